"""Delegation: sub-agents that a model calls, and the thinking around it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import msgspec
import pytest

from app.domain.agents import runtime as runtimes
from app.domain.agents.runtime import SubAgentInfo
from app.domain.chat import delegation
from app.domain.chat.agent_loop import LoopConfig, TokenBudget, run_loop
from app.domain.chat.stream_events import LoopEvent, TextDelta, ToolResult, ToolUse
from app.domain.chat.tool_calls import Call, Round, fail_unknown_calls
from app.domain.chat.toolbox import Report, Toolbox
from app.domain.models.errors import ModelFailed
from app.domain.models.protocol import Function, Message, Target
from app.domain.models.service import Models
from app.domain.tools.service import CallOutcome, ToolOffer
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import until
from tests.model_server import ModelServer, Reply
from tests.talk import PROVIDER, Talker, events_in
from tests.world import Client
from workers.main import JOBS
from workers.runner import Runner

CALL_KEYS = {
    "id",
    "tool",
    "tool_id",
    "input",
    "output",
    "status",
    "execution_time_ms",
    "parent_id",
}


async def _attach(parent: Talker, child: Talker, **more: Any) -> None:
    body = {"agent_id": child.agent_id, **more}
    answer = await parent.client.post(f"{parent.path}/sub-agents/attach", body)
    assert answer.status_code == 201, answer.text


async def _child(parent: Talker, name: str, *, link: Any = None, **fields: Any) -> Talker:
    """A sub-agent with a script of its own."""
    made = await parent.agent(name, **fields)
    await _attach(parent, made, **(link or {}))
    return made


def _calling(*calls: tuple[str, Any], texts: list[str] | None = None, **more: Any) -> Reply:
    return Reply(texts=texts or [], calls=list(calls), **more)


def _hand(name: str, task: str = "Do it") -> tuple[str, Any]:
    return f"delegate_to_{name}", {"task": task}


def _offered(request: dict[str, Any]) -> list[str]:
    """What the model may call; functions that are only named again for the history do not count."""
    if request.get("tool_choice") == "none":
        return []
    return [item["function"]["name"] for item in request.get("tools", [])]


async def _chat(talk: Talker, message: str = "Hello") -> httpx.Response:
    return await talk.client.post(f"{talk.path}/chat", {"message": message})


# What the parent's model is offered


async def test_a_sub_agent_is_offered_as_a_function(talk: Talker) -> None:
    await _child(talk, "Fact Finder", link={"delegation_prompt": "Looks up facts"})
    await talk.say("Hello")
    (tool,) = talk.asked[0]["tools"]
    assert tool["type"] == "function"
    function = tool["function"]
    assert function["name"] == "delegate_to_fact_finder"
    assert function["description"] == "Looks up facts"
    assert function["parameters"]["type"] == "object"
    assert function["parameters"]["required"] == ["task"]
    assert function["parameters"]["properties"]["task"]["type"] == "string"


@pytest.mark.parametrize(
    ("prompt", "description", "told"),
    [
        ("Finds facts", "A finder", "Finds facts"),
        ("", "A finder", "A finder"),
        ("", "", "Hand a task over to Finder"),
    ],
)
async def test_a_function_says_what_it_is_for(
    talk: Talker, prompt: str, description: str, told: str
) -> None:
    await _child(talk, "Finder", link={"delegation_prompt": prompt}, description=description)
    await talk.say("Hello")
    assert talk.asked[0]["tools"][0]["function"]["description"] == told


async def test_an_agent_without_sub_agents_is_offered_nothing(talk: Talker) -> None:
    await talk.say("Hello")
    assert "tools" not in talk.asked[0]


@pytest.mark.parametrize(
    ("names", "functions"),
    [
        (["Über Größe!"], ["ber_gr_e"]),
        (["研究"], ["agent"]),
        (["--- a  b ---"], ["a_b"]),
        (["Same", "same", "SAME"], ["same", "same_2", "same_3"]),
        (["x" * 100], ["x" * 40]),
        (["x" * 100, "x" * 99], ["x" * 40, "x" * 40 + "_2"]),
    ],
)
async def test_any_name_makes_a_function_that_providers_take(
    talk: Talker, names: list[str], functions: list[str]
) -> None:
    for name in names:
        await _child(talk, name)
    await talk.say("Hello")
    offered = _offered(talk.asked[0])
    assert offered == [f"delegate_to_{name}" for name in functions]
    assert all(len(name) <= 64 for name in offered)


@pytest.mark.timeout(3, method="signal")
def test_long_names_that_are_nearly_the_same_are_told_apart() -> None:
    """No server: what hangs here would hang every request of its process."""
    names = ["a" * 48, "a" * 46 + " 3", "a" * 48 + "b"]
    children = [SubAgentInfo(f"agt_{name}", name, "published", "", "") for name in names]
    offers = delegation._offers(children)
    assert len({offer.function.name for offer in offers}) == 3


async def test_children_with_the_same_name_are_each_reached(talk: Talker) -> None:
    first, second = await _child(talk, "Same"), await _child(talk, "Same")
    second.script(Reply(texts=["I am the second."]))
    talk.script(_calling(_hand("same_2")), Reply())
    reply = await talk.say("Hello")
    assert reply["tool_calls"][0]["output"] == "I am the second."
    assert reply["tool_calls"][0]["tool_id"] == second.agent_id
    assert first.asked == []


@pytest.mark.parametrize("status", ["draft", "published"])
async def test_draft_and_published_children_are_offered_in_the_console(
    talk: Talker, status: str
) -> None:
    await _child(talk, "Kid", status=status)
    await talk.say("Hello")
    assert _offered(talk.asked[0]) == ["delegate_to_kid"]


async def test_an_archived_child_is_not_offered(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    await _child(talk, "Other")
    await child.client.put(child.path, {"status": "archived"})
    await talk.say("Hello")
    assert _offered(talk.asked[0]) == ["delegate_to_other"]


async def test_a_disabled_child_is_not_offered_until_it_is_enabled(talk: Talker) -> None:
    child = await _child(talk, "Kid", link={"is_enabled": False})
    await talk.say("Hello")
    assert "tools" not in talk.asked[0]
    path = f"{talk.path}/sub-agents/{child.agent_id}"
    await talk.client("PATCH", path, json={"is_enabled": True})
    await talk.say("Hello")
    assert _offered(talk.asked[1]) == ["delegate_to_kid"]


async def test_a_detached_child_is_not_offered(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    await talk.client.delete(f"{talk.path}/sub-agents/{child.agent_id}")
    await talk.say("Hello")
    assert "tools" not in talk.asked[0]


async def test_a_direct_sub_agent_is_offered_and_answers(talk: Talker, models: ModelServer) -> None:
    body = {
        "name": "Own",
        "primary_model": f"{PROVIDER}/own-model",
        "system_prompt": "You are mine.",
        "delegation_prompt": "Does what I say",
        "temperature": 0.25,
    }
    made = (await talk.client.post(f"{talk.path}/sub-agents/direct", body)).json()
    models.script("own-model", Reply(texts=["Done."]))
    talk.script(_calling(_hand("own")), Reply())
    (call,) = (await talk.say("Hello"))["tool_calls"]
    assert (call["tool_id"], call["output"]) == (made["id"], "Done.")
    assert models.asked("own-model")[-1]["temperature"] == 0.25


# What the child is asked, and what comes back


async def test_a_child_is_asked_with_its_own_model_prompt_and_settings(talk: Talker) -> None:
    child = await _child(
        talk, "Kid", system_prompt="You are the kid.", temperature=0.125, max_tokens=55
    )
    talk.script(_calling(_hand("kid", "Count to three")), Reply())
    await talk.say("Hello", context={"secret": "of the parent"})
    (asked,) = child.asked
    assert asked["messages"] == [
        {"role": "system", "content": "You are the kid."},
        {"role": "user", "content": "Count to three"},
    ]
    assert (asked["temperature"], asked["max_tokens"]) == (0.125, 55)
    assert "tools" not in asked


async def test_what_a_child_says_goes_back_to_its_parent(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["One, ", "two."]))
    talk.script(_calling(_hand("kid", "Count")), Reply(texts=["It counted."]))
    reply = await talk.say("Hello")
    assert reply["message"]["content"] == "It counted."
    *before, called, result = talk.asked[1]["messages"]
    assert [message["role"] for message in before] == ["system", "user"]
    (call,) = called["tool_calls"]
    assert (called["role"], call["type"]) == ("assistant", "function")
    assert call["function"]["name"] == "delegate_to_kid"
    assert json.loads(call["function"]["arguments"]) == {"task": "Count"}
    assert result == {"role": "tool", "content": "One, two.", "tool_call_id": call["id"]}


async def test_a_call_is_told_with_all_of_its_fields(talk: Talker) -> None:
    child = await _child(talk, "Kid Two")
    child.script(Reply(texts=["Done."]))
    talk.script(_calling(_hand("kid_two", "Do it")), Reply())
    (call,) = (await talk.say("Hello"))["tool_calls"]
    assert set(call) == CALL_KEYS
    assert isinstance(call.pop("execution_time_ms"), int)
    assert call.pop("id")
    assert call == {
        "tool": "Kid Two",
        "tool_id": child.agent_id,
        "input": {"task": "Do it"},
        "output": "Done.",
        "status": "completed",
        "parent_id": None,
    }


async def test_calls_of_several_rounds_have_ids_of_their_own(talk: Talker) -> None:
    """The scripted model says `call_0` every time."""
    await _child(talk, "Kid")
    talk.script(_calling(_hand("kid", "1")), _calling(_hand("kid", "2")), Reply())
    reply = await talk.say("Hello")
    assert [call["input"]["task"] for call in reply["tool_calls"]] == ["1", "2"]
    assert len({call["id"] for call in reply["tool_calls"]}) == 2


async def test_what_is_said_before_and_after_a_call_stays_apart(talk: Talker) -> None:
    await _child(talk, "Kid")
    talk.script(_calling(_hand("kid"), texts=["Let me ask."]), Reply(texts=["It says", " hi."]))
    reply = await talk.say("Hello")
    assert reply["message"]["content"] == "Let me ask.\n\nIt says hi."
    assert talk.asked[1]["messages"][2]["content"] == "Let me ask."


async def test_the_kept_message_has_the_same_calls_as_the_reply(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    await _child(child, "Grandkid")
    child.script(_calling(_hand("grandkid")), Reply(texts=["Done."]))
    talk.script(_calling(_hand("kid")), Reply())
    reply = await talk.say("Hello")
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    asked, answered = (await talk.client.get(path)).json()["data"]
    assert asked["tool_calls"] == []
    assert answered["tool_calls"] == reply["tool_calls"]
    assert len(reply["tool_calls"]) == 2


async def test_children_have_no_conversations_of_their_own(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    talk.script(_calling(_hand("kid")), Reply())
    await talk.say("Hello")
    listed = (await talk.client.get(f"{child.path}/conversations")).json()
    assert listed["pagination"]["total"] == 0


async def test_the_next_turn_shows_the_parents_own_calls_again(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    await _child(child, "Grandkid")
    child.script(_calling(_hand("grandkid")), Reply(texts=["Done."]))
    talk.script(_calling(_hand("kid")), Reply(texts=["Fine."]), Reply(texts=["Again."]))
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    told = talk.asked[-1]["messages"]
    roles = [message["role"] for message in told]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    names = [call["function"]["name"] for call in told[2]["tool_calls"]]
    assert (names, told[3]["content"]) == (["delegate_to_kid"], "Done.")
    assert [told[4]["content"], told[5]["content"]] == ["Fine.", "Two"]


async def test_the_next_turn_without_children_shows_no_calls(talk: Talker) -> None:
    """A provider refuses calls of functions that it is not told of."""
    child = await _child(talk, "Kid")
    talk.script(_calling(_hand("kid")), Reply(texts=["Fine."]))
    first = await talk.say("One")
    await talk.client.delete(f"{talk.path}/sub-agents/{child.agent_id}")
    await talk.say("Two", conversation_id=first["conversation_id"])
    told = talk.asked[-1]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]


async def test_a_very_long_answer_is_cut_for_the_model_only(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["x" * 60_000]))
    talk.script(_calling(_hand("kid")), Reply())
    reply = await talk.say("Hello")
    assert reply["tool_calls"][0]["output"] == "x" * 60_000
    told = talk.asked[1]["messages"][-1]["content"]
    assert told == "x" * 50_000 + "… (cut)"


# Depth


async def test_the_steps_of_a_grandchild_name_the_call_that_they_belong_to(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    grandchild = await _child(child, "Grandkid")
    great = await _child(grandchild, "Great")
    great.script(Reply(texts=["Deep."]))
    grandchild.script(_calling(_hand("great", "c")), Reply(texts=["Grand."]))
    child.script(_calling(_hand("grandkid", "b")), Reply(texts=["Kid."]))
    talk.script(_calling(_hand("kid", "a")), Reply())
    calls = (await talk.say("Hello"))["tool_calls"]
    told = [(call["tool"], call["input"]["task"], call["output"]) for call in calls]
    assert told == [("Kid", "a", "Kid."), ("Grandkid", "b", "Grand."), ("Great", "c", "Deep.")]
    assert calls[0]["parent_id"] is None
    assert calls[1]["parent_id"] == calls[0]["id"]
    assert calls[2]["parent_id"] == calls[1]["id"]
    assert {call["status"] for call in calls} == {"completed"}
    assert all(set(call) == CALL_KEYS for call in calls)


async def test_tasks_are_handed_down_three_times_at_most(talk: Talker) -> None:
    line = [talk]
    for name in ("one", "two", "three", "four"):
        line.append(await _child(line[-1], name))
    for agent, name in zip(line, ("one", "two", "three", "four"), strict=False):
        agent.script(_calling(_hand(name)), Reply())
    reply = await talk.say("Hello")
    offered = [_offered(agent.asked[0]) for agent in line[:4]]
    expected = ["delegate_to_one", "delegate_to_two", "delegate_to_three"]
    assert offered == [*([name] for name in expected), []]
    assert line[4].asked == []
    *_, last = reply["tool_calls"]
    assert [call["tool"] for call in reply["tool_calls"]] == ["one", "two", "three", last["tool"]]
    assert (last["tool"], last["status"]) == ("delegate_to_four", "failed")


async def test_usage_sums_every_call_of_every_model(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    grandchild = await _child(child, "Grandkid")
    talk.script(_calling(_hand("kid"), usage=(1000, 1)), Reply(usage=(2000, 2)))
    child.script(_calling(_hand("grandkid"), usage=(300, 30)), Reply(usage=(400, 40)))
    grandchild.script(Reply(usage=(50_000, 500)))
    reply = await talk.say("Hello")
    assert reply["usage"] == {
        "prompt_tokens": 53_700,
        "completion_tokens": 573,
        "total_tokens": 54_273,
    }
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_tokens_used"] == 54_273
    assert (stats["total_conversations"], stats["total_messages"]) == (1, 2)


async def test_usage_is_logged_for_each_model(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    talk.script(_calling(_hand("kid"), usage=(10, 1)), Reply(usage=(20, 2)))
    child.script(Reply(usage=(300, 30)))
    await talk.say("Hello")
    logged = (await talk.client.get(f"{talk.path}/logs", params={"type": "token_usage"})).json()
    used = {
        item["data"]["model"]: (item["data"]["prompt_tokens"], item["data"]["completion_tokens"])
        for item in logged["data"]
    }
    assert used == {
        f"{PROVIDER}/{talk.model}": (30, 3),
        f"{PROVIDER}/{child.model}": (300, 30),
    }


# Side by side


async def test_calls_of_one_round_run_side_by_side(talk: Talker) -> None:
    """Each child waits until both have been asked."""
    hold = asyncio.Event()
    first, second = await _child(talk, "First"), await _child(talk, "Second")
    first.script(Reply(texts=["1"], hold=hold))
    second.script(Reply(texts=["2"], hold=hold))
    talk.script(_calling(_hand("first"), _hand("second")), Reply())
    saying = asyncio.create_task(talk.say("Hello"))
    await until(lambda: first.asked and second.asked)
    hold.set()
    reply = await saying
    assert [(call["tool"], call["output"]) for call in reply["tool_calls"]] == [
        ("First", "1"),
        ("Second", "2"),
    ]


async def test_results_go_back_in_the_order_of_the_calls(talk: Talker) -> None:
    hold = asyncio.Event()
    slow, quick = await _child(talk, "Slow"), await _child(talk, "Quick")
    slow.script(Reply(texts=["slow"], hold=hold))
    quick.script(Reply(texts=["quick"]))
    talk.script(_calling(_hand("slow"), _hand("quick")), Reply())
    saying = asyncio.create_task(talk.say("Hello"))
    await until(lambda: slow.asked and quick.asked)
    hold.set()
    await saying
    *_, called, first, second = talk.asked[1]["messages"]
    assert [first["content"], second["content"]] == ["slow", "quick"]
    ids = [call["id"] for call in called["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == ids


async def test_one_child_does_several_tasks_at_once(talk: Talker) -> None:
    hold = asyncio.Event()
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["Done."], hold=hold))
    talk.script(_calling(*(_hand("kid", str(number)) for number in range(4))), Reply())
    saying = asyncio.create_task(talk.say("Hello"))
    await until(lambda: len(child.asked) == 4)
    hold.set()
    calls = (await saying)["tool_calls"]
    assert [call["input"]["task"] for call in calls] == ["0", "1", "2", "3"]
    assert {call["output"] for call in calls} == {"Done."}


async def test_sixteen_calls_run_at_a_time_and_no_more(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    talk.script(_calling(*(_hand("kid", str(number)) for number in range(18))), Reply())
    calls = (await talk.say("Hello"))["tool_calls"]
    assert [call["status"] for call in calls] == ["completed"] * 16 + ["failed"] * 2
    assert calls[16]["output"] == {"error": "at most 16 calls at a time"}
    assert len(child.asked) == 16


# What goes wrong is told to the model


async def _one_call(talk: Talker, call: tuple[str, Any]) -> dict[str, Any]:
    """The only call of a turn that goes on after it; what the model is told is in `told`."""
    talk.script(_calling(call), Reply(texts=["I see."]))
    reply = await talk.say("Hello")
    assert reply["message"]["content"] == "I see."
    (found,) = reply["tool_calls"]
    message = talk.asked[-1]["messages"][-1]
    assert message["role"] == "tool"
    told: dict[str, Any] = {**found, "told": message["content"]}
    return told


async def test_a_tool_that_is_not_there_is_told_as_a_failed_call(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    call = await _one_call(talk, ("launch_rockets", {"task": "Now"}))
    assert (call["tool"], call["tool_id"], call["status"]) == ("launch_rockets", None, "failed")
    assert call["input"] == {"task": "Now"}
    assert call["output"] == {"error": "there is no tool launch_rockets"}
    assert json.loads(call["told"]) == call["output"]
    assert child.asked == []


async def test_a_call_by_an_agent_without_tools_is_told_as_a_failed_call(talk: Talker) -> None:
    call = await _one_call(talk, _hand("kid"))
    assert (call["status"], call["tool"]) == ("failed", "delegate_to_kid")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("{not json", "{not json"),
        ('"just text"', "just text"),
        ("[1, 2]", [1, 2]),
        ("null", None),
        ("7", 7),
        ("", {}),
        ("  ", {}),
        ("{}", {}),
        ('{"task": ""}', {"task": ""}),
        ('{"task": " \\n"}', {"task": " \n"}),
        ('{"task": null}', {"task": None}),
        ('{"task": 5}', {"task": 5}),
        ('{"task": ["x"]}', {"task": ["x"]}),
        ('{"job": "x"}', {"job": "x"}),
        ("[" * 5000, "[" * 5000),
    ],
)
async def test_arguments_that_make_no_sense_are_told_as_a_failed_call(
    talk: Talker, arguments: str, shown: object
) -> None:
    child = await _child(talk, "Kid")
    call = await _one_call(talk, ("delegate_to_kid", arguments))
    assert (call["status"], call["input"]) == ("failed", shown)
    assert set(call["output"]) == {"error"}
    assert json.loads(call["told"]) == call["output"]
    assert child.asked == []


async def test_more_arguments_than_asked_for_do_no_harm(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    given = {"task": "Do it", "agent_id": "agt_other", "temperature": 9}
    call = await _one_call(talk, ("delegate_to_kid", given))
    assert (call["status"], call["input"]) == ("completed", given)
    assert child.asked[0]["messages"][1]["content"] == "Do it"


async def test_an_escaped_nul_in_the_arguments_does_not_lose_the_turn(talk: Talker) -> None:
    await _child(talk, "Kid")
    talk.script(_calling(("delegate_to_kid", '{"task": "a\\u0000b"}')), Reply(texts=["Fine."]))
    answer = await _chat(talk)
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"]["content"] == "Fine."


async def test_a_nul_in_the_name_of_a_tool_does_not_lose_the_turn(talk: Talker) -> None:
    await _child(talk, "Kid")
    talk.script(_calling(("delegate\x00", {})), Reply(texts=["Fine."]))
    answer = await _chat(talk)
    assert answer.status_code == 200, answer.text


async def _sql(services: Services, *statements: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        for statement in statements:
            await (await tx.raw()).execute(statement)


@pytest.fixture
async def unkeepable(services: Services) -> AsyncIterator[str]:
    """A text that the database refuses to keep."""
    text = new_id("refused")
    await _sql(
        services,
        """
        CREATE FUNCTION refuse_text() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$
        """,
        f"""
        CREATE TRIGGER refuse_text BEFORE INSERT ON conversation_entries
        FOR EACH ROW WHEN (NEW.content = '{text}') EXECUTE FUNCTION refuse_text()
        """,
    )
    yield text
    await _sql(
        services,
        "DROP TRIGGER refuse_text ON conversation_entries",
        "DROP FUNCTION refuse_text",
    )


async def test_a_turn_that_cannot_be_kept_frees_its_conversation(
    talk: Talker, unkeepable: str
) -> None:
    """Nobody is answering any more, so 409 `conversation_busy` would be untrue."""
    talk.script(Reply(), Reply(texts=[unkeepable]), Reply(texts=["Back."]))
    first = await talk.say("One")
    body = {"message": "Two", "conversation_id": first["conversation_id"]}
    lost = await talk.client.post(f"{talk.path}/chat", body)
    assert lost.status_code == 500
    answer = await talk.client.post(f"{talk.path}/chat", {**body, "message": "Three"})
    assert answer.status_code == 200, answer.text


async def test_a_child_whose_model_fails_is_told_as_a_failed_call(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(status=400, message="no such luck"))
    call = await _one_call(talk, _hand("kid"))
    assert call["status"] == "failed"
    assert call["output"]["code"] == "provider_error"
    assert call["output"]["error"] == "it could not answer"
    assert json.loads(call["told"]) == call["output"]


async def test_a_child_without_a_key_for_its_model_is_told_as_a_failed_call(
    talk: Talker,
) -> None:
    await _child(talk, "Kid", primary_model="gpt-4o")
    call = await _one_call(talk, _hand("kid"))
    assert (call["status"], call["output"]["code"]) == ("failed", "model_not_configured")


async def test_a_failing_grandchild_is_the_childs_own_business(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    grandchild = await _child(child, "Grandkid")
    grandchild.script(Reply(status=400))
    child.script(_calling(_hand("grandkid")), Reply(texts=["I did it myself."]))
    talk.script(_calling(_hand("kid")), Reply())
    outer, inner = (await talk.say("Hello"))["tool_calls"]
    assert (outer["status"], outer["output"]) == ("completed", "I did it myself.")
    assert (inner["status"], inner["parent_id"]) == ("failed", outer["id"])


async def test_a_failing_call_does_not_disturb_the_one_beside_it(talk: Talker) -> None:
    bad, good = await _child(talk, "Bad"), await _child(talk, "Good")
    bad.script(Reply(status=400))
    good.script(Reply(texts=["Done."]))
    talk.script(_calling(_hand("bad"), _hand("good"), ("nothing", {})), Reply())
    calls = (await talk.say("Hello"))["tool_calls"]
    assert [call["status"] for call in calls] == ["failed", "completed", "failed"]
    assert calls[1]["output"] == "Done."


@pytest.mark.parametrize(
    ("method", "code"), [("PUT", "agent_archived"), ("DELETE", "agent_not_found")]
)
async def test_a_child_that_goes_in_the_middle_of_a_turn_is_told_as_a_failed_call(
    talk: Talker, method: str, code: str
) -> None:
    hold = asyncio.Event()
    child = await _child(talk, "Kid")
    # The hold comes before each text, and calls after the last.
    talk.script(_calling(_hand("kid"), texts=["Wait."], hold=hold), Reply())
    saying = asyncio.create_task(talk.say("Hello"))
    await until(lambda: talk.asked)
    content = {"json": {"status": "archived"}} if method == "PUT" else {}
    assert (await talk.client(method, child.path, **content)).status_code in {200, 204}
    hold.set()
    (call,) = (await saying)["tool_calls"]
    assert (call["status"], call["output"]["code"]) == ("failed", code)
    assert child.asked == []


async def test_a_child_that_says_nothing_gives_an_empty_output(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(texts=[]))
    call = await _one_call(talk, _hand("kid"))
    assert (call["status"], call["output"], call["told"]) == ("completed", "", "")


async def test_what_was_done_before_the_parents_model_failed_is_kept(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["Done."], usage=(30, 3)))
    talk.script(_calling(_hand("kid"), usage=(10, 1)), Reply(status=400))
    answer = await _chat(talk)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "provider_error"
    (kept,) = (await talk.client.get(f"{talk.path}/conversations")).json()["data"]
    path = f"/api/v1/conversations/{kept['id']}/messages"
    _, answered = (await talk.client.get(path)).json()["data"]
    assert answered["status"] == "interrupted"
    assert [call["output"] for call in answered["tool_calls"]] == ["Done."]
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_tokens_used"] == 44


# Rounds and tokens


async def test_after_ten_rounds_the_model_is_asked_once_more_without_tools(
    talk: Talker,
) -> None:
    child = await _child(talk, "Kid")
    talk.script(*[_calling(_hand("kid"))] * 10, Reply(texts=["Enough."]))
    reply = await talk.say("Hello")
    assert [bool(_offered(request)) for request in talk.asked] == [True] * 10 + [False]
    assert len(child.asked) == 10
    assert reply["message"]["content"] == "Enough."
    assert len(reply["tool_calls"]) == 10


async def test_a_model_that_calls_without_being_offered_anything_is_not_heard(
    talk: Talker,
) -> None:
    child = await _child(talk, "Kid")
    talk.script(_calling(_hand("kid"), texts=["More!"]))
    reply = await talk.say("Hello")
    assert len(talk.asked) == 11
    assert len(child.asked) == len(reply["tool_calls"]) == 10
    assert reply["message"]["content"] == "\n\n".join(["More!"] * 11)


async def test_a_child_has_ten_rounds_of_its_own(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    grandchild = await _child(child, "Grandkid")
    child.script(_calling(_hand("grandkid"), texts=["More!"]))
    talk.script(_calling(_hand("kid")), Reply())
    reply = await talk.say("Hello")
    assert (len(child.asked), len(grandchild.asked)) == (11, 10)
    assert (len(talk.asked), len(reply["tool_calls"])) == (2, 11)


async def test_a_turn_that_has_used_up_its_tokens_hands_on_nothing(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    talk.script(_calling(_hand("kid"), usage=(150_000, 50_000)), Reply(texts=["Enough."]))
    reply = await talk.say("Hello")
    (call,) = reply["tool_calls"]
    assert (call["status"], set(call["output"])) == ("failed", {"error"})
    assert child.asked == []
    assert not _offered(talk.asked[1])
    assert reply["message"]["content"] == "Enough."


async def test_a_turn_just_below_its_tokens_hands_on(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    talk.script(_calling(_hand("kid"), usage=(149_999, 50_000)), Reply())
    (call,) = (await talk.say("Hello"))["tool_calls"]
    assert (call["status"], len(child.asked)) == ("completed", 1)
    assert not _offered(talk.asked[1])


async def test_what_a_child_uses_is_used_up_for_its_parent(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["Much."], usage=(200_000, 0)))
    talk.script(_calling(_hand("kid")), _calling(_hand("kid"), texts=["Again!"]))
    reply = await talk.say("Hello")
    assert len(child.asked) == len(reply["tool_calls"]) == 1
    assert not _offered(talk.asked[1])


async def test_what_a_parent_used_is_used_up_for_its_child(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    grandchild = await _child(child, "Grandkid")
    talk.script(_calling(_hand("kid"), usage=(199_000, 0)), Reply())
    child.script(_calling(_hand("grandkid"), usage=(1000, 0)), Reply(texts=["Alone."]))
    outer, inner = (await talk.say("Hello"))["tool_calls"]
    assert (outer["output"], inner["status"]) == ("Alone.", "failed")
    assert not _offered(child.asked[1])
    assert grandchild.asked == []


async def test_the_next_turn_has_tokens_again(talk: Talker) -> None:
    await _child(talk, "Kid")
    talk.script(_calling(_hand("kid"), usage=(200_000, 0)), Reply())
    first = await talk.say("Hello")
    await talk.say("Again", conversation_id=first["conversation_id"])
    assert _offered(talk.asked[-1]) == ["delegate_to_kid"]


# Streams and visitors


async def _stream(caller: Client, path: str, body: Any, **more: Any) -> list[tuple[str, Any]]:
    answer = await caller.post(path, body, **more)
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


async def test_a_stream_tells_every_step_of_every_child_in_order(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    await _child(child, "Grandkid")
    child.script(_calling(_hand("grandkid", "b")), Reply(texts=["Done."]))
    talk.script(_calling(_hand("kid", "a"), texts=["Wait."]), Reply(texts=["Fine."]))
    events = await _stream(talk.client, f"{talk.path}/chat/stream", {"message": "Hello"})
    names = [name for name, _ in events]
    assert names == [
        "message_start",
        "content_delta",
        "tool_use",
        "tool_use",
        "tool_result",
        "tool_result",
        "content_delta",
        "message_stop",
    ]
    used, within, result_within, result = (data for name, data in events if "tool" in name)
    assert (used["tool"], used["input"], used["parent_id"]) == ("Kid", {"task": "a"}, None)
    assert (within["tool"], within["parent_id"]) == ("Grandkid", used["id"])
    assert (result_within["id"], result_within["parent_id"]) == (within["id"], used["id"])
    assert (result["id"], result["output"], result["status"]) == (used["id"], "Done.", "completed")
    assert set(used) == {"id", "tool", "tool_id", "input", "parent_id"}
    assert set(result) == CALL_KEYS - {"input"}


async def test_a_stream_has_calls_that_arrive_in_fragments_whole(talk: Talker) -> None:
    first, second = await _child(talk, "First"), await _child(talk, "Second")
    talk.script(_calling(_hand("first", "ä" * 200), _hand("second", "b")), Reply())
    events = await _stream(talk.client, f"{talk.path}/chat/stream", {"message": "Hello"})
    tasks = [data["input"]["task"] for name, data in events if name == "tool_use"]
    assert tasks == ["ä" * 200, "b"]
    assert (len(first.asked), len(second.asked)) == (1, 1)


async def test_what_children_say_is_no_part_of_the_streamed_reply(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["Secret."]))
    talk.script(_calling(_hand("kid")), Reply(texts=["Public."]))
    events = await _stream(talk.client, f"{talk.path}/chat/stream", {"message": "Hello"})
    said = [data["delta"] for name, data in events if name == "content_delta"]
    assert said == ["Public."]


async def _visitor_key(talk: Talker) -> dict[str, str]:
    body = {"agent_id": talk.agent_id, "name": "Site"}
    answer = await talk.client.post("/api/v1/embed/api-keys", body)
    return {"x-api-key": answer.json()["api_key"]}


async def test_visitors_meet_no_draft_at_any_depth(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    await _child(talk, "Draft", status="draft")
    await _child(child, "Draft", status="draft")
    await _child(child, "Grandkid")
    child.script(_calling(_hand("draft")), Reply(texts=["Done."]))
    talk.script(_calling(_hand("kid"), _hand("draft")), Reply(texts=["Fine."]))
    headers, visitor = await _visitor_key(talk), talk.world.anonymous()
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    body = {"session_id": "s", "message": "Hello"}
    answer = await visitor.post(path, body, headers=headers)
    assert answer.json()["assistant_reply"]["content"] == "Fine."
    assert _offered(talk.asked[0]) == ["delegate_to_kid"]
    assert _offered(child.asked[0]) == ["delegate_to_grandkid"]


async def test_visitors_are_told_nothing_of_what_goes_into_calls(talk: Talker) -> None:
    child = await _child(talk, "Kid")
    await _child(child, "Grandkid")
    child.script(_calling(_hand("grandkid", "inner secret")), Reply(texts=["output secret"]))
    talk.script(_calling(_hand("kid", "outer secret")), Reply(texts=["Fine."]))
    headers, visitor = await _visitor_key(talk), talk.world.anonymous()
    path = f"/api/v1/public/agents/{talk.agent_id}/chat/stream"
    body = {"session_id": "s", "message": "Hello"}
    answer = await visitor.post(path, body, headers=headers)
    assert "secret" not in answer.text
    assert child.agent_id not in answer.text
    names = [name for name, _ in events_in(answer.text) if name.startswith("tool")]
    assert names == ["tool_use", "tool_use", "tool_result", "tool_result"]


# Thinking by itself


class Box:
    """One tool that notes what it is given, and does what the test says."""

    def __init__(self, outcome: CallOutcome | Exception, *, repeatable: bool = True) -> None:
        function = Function("tool", "A tool", {"type": "object"})
        self.offers = [ToolOffer(function, "Tool", None, repeatable)]
        self.arguments: list[dict[str, Any]] = []
        self._outcome = outcome

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], report: Report
    ) -> CallOutcome:
        self.arguments.append(arguments)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class Kept:
    """A journal that notes how many rounds and outcomes there were each time."""

    def __init__(self, rounds: list[Round]) -> None:
        self.rounds = rounds
        self.seen: list[tuple[int, int]] = []

    async def save(self) -> None:
        calls = [call for done in self.rounds for call in done.calls]
        self.seen.append((len(self.rounds), sum(call.status is not None for call in calls)))


class Thinker:
    """A mind over the scripted model, without any agent or conversation."""

    def __init__(self, services: Services, models: ModelServer, model: str) -> None:
        self._services, self._models, self._model = services, models, model
        self.budget = TokenBudget()

    def mind(self, *boxes: Toolbox, live: bool = False) -> LoopConfig:
        target = Target(f"{PROVIDER}/{self._model}", PROVIDER, "sk-x", self._models.url)
        return LoopConfig(
            models=self._services.get(Models),
            target=target,
            temperature=0.5,
            max_tokens=10,
            toolboxes=list(boxes),
            live=live,
        )

    def script(self, *replies: Reply) -> None:
        self._models.script(self._model, *replies)

    @property
    def asked(self) -> list[dict[str, Any]]:
        return self._models.asked(self._model)

    async def think(
        self, *boxes: Toolbox, journal: Kept | None = None, live: bool = False
    ) -> list[LoopEvent]:
        messages = [Message("user", "Hello")]
        thoughts = run_loop(self.mind(*boxes, live=live), messages, self.budget, journal)
        async with aclosing(thoughts) as steps:
            return [step async for step in steps]


@pytest.fixture
def thinker(services: Services, models: ModelServer) -> Thinker:
    return Thinker(services, models, new_id("thinker"))


def _text(steps: list[LoopEvent]) -> str:
    return "".join(step.delta for step in steps if isinstance(step, TextDelta))


async def test_a_small_budget_ends_the_rounds(thinker: Thinker) -> None:
    box = Box(CallOutcome("ok"))
    thinker.budget = TokenBudget(limit=50)
    thinker.script(_calling(("tool", {}), texts=["More!"], usage=(10, 7)))
    steps = await thinker.think(box)
    # 17, 34, 51: the third answer's call still runs, the fourth is asked without tools.
    assert [bool(_offered(request)) for request in thinker.asked] == [True, True, True, False]
    assert len(box.arguments) == 3
    assert (thinker.budget.prompt_tokens, thinker.budget.completion_tokens) == (40, 28)
    assert _text(steps) == "More!\n\nMore!\n\nMore!\n\nMore!"


async def test_a_budget_that_is_used_up_at_the_start_still_gives_an_answer(
    thinker: Thinker,
) -> None:
    thinker.budget = TokenBudget(limit=10)
    thinker.budget.add("another-model", 10, 0)
    thinker.script(Reply(texts=["Hi."]))
    assert _text(await thinker.think(Box(CallOutcome("ok")))) == "Hi."
    assert not _offered(thinker.asked[0])


async def test_delegation_refuses_once_the_budget_is_used_up(
    talk: Talker, services: Services
) -> None:
    child = await _child(talk, "Kid")
    async with services.db.tx(talk.client.tenant_id, autocommit=True) as tx:
        runtime = await runtimes.load_runtime(tx, services.keyring, talk.agent_id)
    spend = TokenBudget(limit=1)
    spend.add("x", 1, 0)
    box = delegation.Delegation(services, runtime, spend, 0, is_public=False)
    told: list[ToolUse | ToolResult] = []
    outcome = await box.run(box.offers[0], "call_1", {"task": "Do it"}, told.append)
    assert (outcome.status, told, child.asked) == ("failed", [], [])


async def test_a_model_that_does_not_tell_its_usage_is_estimated(thinker: Thinker) -> None:
    thinker.script(Reply(texts=["x" * 70], usage=None))
    await thinker.think()
    assert thinker.budget.prompt_tokens > 0
    assert thinker.budget.completion_tokens == 21


async def test_an_answer_that_breaks_off_counts_as_used(thinker: Thinker) -> None:
    thinker.script(Reply(texts=["x" * 70, "never said"], drop_after=1))
    with pytest.raises(ModelFailed):
        await thinker.think(live=True)
    assert thinker.budget.prompt_tokens > 0
    assert thinker.budget.completion_tokens == 21


async def test_an_answer_that_nobody_waits_for_counts_as_used(thinker: Thinker) -> None:
    thinker.script(Reply(texts=["x" * 70] * 2, delay=0.01))
    thoughts = run_loop(thinker.mind(live=True), [Message("user", "Hello")], thinker.budget)
    async with aclosing(thoughts) as steps:
        async for _ in steps:
            break
    assert thinker.budget.completion_tokens == 21


@pytest.mark.parametrize("status", ["completed", "failed", "timeout"])
async def test_an_outcome_is_told_with_its_status(thinker: Thinker, status: Any) -> None:
    thinker.script(_calling(("tool", {"a": 1})), Reply())
    steps = await thinker.think(Box(CallOutcome({"b": 2}, status)))
    used, result = (step for step in steps if not isinstance(step, TextDelta))
    assert isinstance(used, ToolUse)
    assert (used.tool, used.input, used.function) == ("Tool", {"a": 1}, "tool")
    assert isinstance(result, ToolResult)
    assert (result.id, result.output, result.status) == (used.id, {"b": 2}, status)
    assert thinker.asked[1]["messages"][-1]["content"] == '{"b":2}'


async def test_a_tool_that_breaks_tells_nothing_of_why(thinker: Thinker) -> None:
    thinker.script(_calling(("tool", {})), Reply(texts=["Fine."]))
    steps = await thinker.think(Box(RuntimeError("password=hunter2")))
    (result,) = (step for step in steps if isinstance(step, ToolResult))
    assert (result.status, result.output) == ("failed", {"error": "the tool failed"})
    assert _text(steps) == "Fine."


async def test_the_first_box_that_has_a_name_keeps_it(thinker: Thinker) -> None:
    first, second = Box(CallOutcome("1")), Box(CallOutcome("2"))
    thinker.script(_calling(("tool", {})), Reply())
    await thinker.think(first, second)
    assert _offered(thinker.asked[0]) == ["tool"]
    assert (len(first.arguments), len(second.arguments)) == (1, 0)


class Endless(Box):
    """Runs until it is stopped."""

    running = 0

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], report: Report
    ) -> CallOutcome:
        self.running += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1
        return await super().run(offer, call_id, arguments, report)


async def test_whoever_stops_listening_stops_what_runs(thinker: Thinker) -> None:
    box = Endless(CallOutcome("never"))
    thinker.script(_calling(("tool", {}), ("tool", {})))
    thoughts = run_loop(thinker.mind(box), [Message("user", "Hello")], thinker.budget)
    async with aclosing(thoughts) as steps:
        assert isinstance(await anext(steps), ToolUse)
        assert isinstance(await anext(steps), ToolUse)
        waiting = asyncio.ensure_future(anext(steps))
        await until(lambda: box.running == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert (box.running, box.arguments) == (0, [])


# Going on after a crash


def _done(*calls: Call, text: str = "") -> Round:
    return Round(text, list(calls), used={"scripted/thinker": [10, 1]})


async def test_every_round_is_kept_before_and_after_it_runs(thinker: Thinker) -> None:
    journal = Kept([])
    thinker.script(_calling(("tool", {}), ("tool", {})), _calling(("tool", {})), Reply())
    await thinker.think(Box(CallOutcome("ok")), journal=journal)
    assert journal.seen == [(1, 0), (1, 2), (2, 2), (2, 3)]


async def test_a_kept_outcome_is_told_and_not_worked_out_again(thinker: Thinker) -> None:
    box = Box(CallOutcome("new"))
    done = Call("c1", "tool", '{"a":1}', "Tool", None, "old", "completed", 5)
    journal = Kept([_done(done, text="Wait.")])
    thinker.script(Reply(texts=["Fine."], usage=(20, 2)))
    steps = await thinker.think(box, journal=journal)
    assert box.arguments == []
    assert steps[1:3] == [
        ToolUse("c1", "Tool", None, {"a": 1}, function="tool"),
        ToolResult("c1", "Tool", None, "old", "completed", 5),
    ]
    assert _text(steps) == "Wait.\n\nFine."
    roles = [message["role"] for message in thinker.asked[0]["messages"]]
    assert roles == ["user", "assistant", "tool"]
    assert (thinker.budget.prompt_tokens, thinker.budget.completion_tokens) == (30, 3)


async def test_kept_rounds_read_as_they_did_when_they_were_said(thinker: Thinker) -> None:
    call = Call("c1", "tool", "{}", "Tool", None, "ok", "completed")
    journal = Kept([_done(call, text="One."), _done(call, text="Two.")])
    thinker.script(Reply(texts=["Three."]))
    steps = await thinker.think(Box(CallOutcome("ok")), journal=journal)
    assert _text(steps) == "One.\n\nTwo.\n\nThree."


async def test_kept_rounds_count_among_the_ten(thinker: Thinker) -> None:
    calls = [Call(f"c{n}", "tool", "{}", "Tool", None, "ok", "completed") for n in range(9)]
    journal = Kept([_done(call) for call in calls])
    thinker.script(_calling(("tool", {}), texts=["More!"]))
    await thinker.think(Box(CallOutcome("ok")), journal=journal)
    assert [bool(_offered(request)) for request in thinker.asked] == [True, False]


@pytest.mark.parametrize("repeatable", [True, False])
async def test_a_call_without_an_outcome_runs_again_only_if_that_does_no_harm(
    thinker: Thinker, *, repeatable: bool
) -> None:
    box = Box(CallOutcome("ok"), repeatable=repeatable)
    journal = Kept([_done(Call("c1", "tool", "{}", "Tool"))])
    fail_unknown_calls(journal.rounds, [box])
    thinker.script(Reply())
    steps = await thinker.think(box, journal=journal)
    (result,) = (step for step in steps if isinstance(step, ToolResult))
    assert len(box.arguments) == int(repeatable)
    assert result.status == ("completed" if repeatable else "failed")


# In the background


class Background(msgspec.Struct):
    """Asynchronous turns of one agent, run here instead of by a worker process."""

    talk: Talker
    services: Services

    async def accept(self) -> str:
        path = f"{self.talk.path}/chat/async"
        answer = await self.talk.client.post(path, {"message": "Hello"})
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["job_id"]
        return job_id

    async def attempt(self, job_id: str) -> None:
        async with self.services.db.tx(ALL_TENANTS) as tx:
            sql = "UPDATE work SET run_at = now() WHERE ref_id = $1 RETURNING id"
            work_id = await (await tx.raw()).fetchval(sql, job_id)
        # In a task of its own: a runner leaves its trace in the context.
        await asyncio.create_task(Runner(self.services, JOBS).run(work_id))

    async def job(self, job_id: str) -> dict[str, Any]:
        found = (await self.talk.client.get(f"{self.talk.path}/chat/jobs/{job_id}")).json()
        assert isinstance(found, dict)
        return found


@pytest.fixture
async def background(talk: Talker, services: Services) -> AsyncIterator[Background]:
    yield Background(talk, services)
    async with services.db.tx(ALL_TENANTS) as tx:
        sql = "DELETE FROM work WHERE tenant_id = $1"
        await (await tx.raw()).execute(sql, talk.client.tenant_id)


# So long a wait that the gateway leaves it to the next attempt.
BUSY = Reply(status=429, headers={"Retry-After": "30"})


async def test_an_asynchronous_turn_delegates_like_any_other(background: Background) -> None:
    talk = background.talk
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["Done."], usage=(300, 30)))
    talk.script(_calling(_hand("kid"), usage=(10, 1)), Reply(texts=["Fine."], usage=(20, 2)))
    job_id = await background.accept()
    await background.attempt(job_id)
    job = await background.job(job_id)
    assert job["status"] == "completed"
    assert job["reply"]["message"]["content"] == "Fine."
    assert [call["output"] for call in job["reply"]["tool_calls"]] == ["Done."]
    assert job["reply"]["usage"]["total_tokens"] == 363


async def test_a_second_attempt_goes_on_from_the_calls_of_the_first(
    background: Background,
) -> None:
    talk = background.talk
    child = await _child(talk, "Kid")
    child.script(Reply(texts=["Done."]))
    talk.script(_calling(_hand("kid"), texts=["Wait."]), BUSY, Reply(texts=["Fine."]))
    job_id = await background.accept()
    await background.attempt(job_id)
    assert (await background.job(job_id))["status"] == "running"
    await background.attempt(job_id)
    job = await background.job(job_id)
    assert job["reply"]["message"]["content"] == "Wait.\n\nFine."
    assert [call["output"] for call in job["reply"]["tool_calls"]] == ["Done."]
    assert len(child.asked) == 1


async def test_a_second_attempt_counts_what_the_first_ones_children_used(
    background: Background,
) -> None:
    talk = background.talk
    child = await _child(talk, "Kid")
    child.script(Reply(usage=(300, 30)))
    talk.script(_calling(_hand("kid"), usage=(10, 1)), BUSY, Reply(usage=(20, 2)))
    job_id = await background.accept()
    for _ in range(2):
        await background.attempt(job_id)
    job = await background.job(job_id)
    assert job["reply"]["usage"]["total_tokens"] == 363


async def test_a_second_attempt_still_shows_what_the_children_did(
    background: Background,
) -> None:
    talk = background.talk
    child = await _child(talk, "Kid")
    await _child(child, "Grandkid")
    child.script(_calling(_hand("grandkid")), Reply())
    talk.script(_calling(_hand("kid")), BUSY, Reply())
    job_id = await background.accept()
    for _ in range(2):
        await background.attempt(job_id)
    calls = (await background.job(job_id))["reply"]["tool_calls"]
    assert [call["tool"] for call in calls] == ["Kid", "Grandkid"]
