"""Failed calls are results for the model, not errors of the turn."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.assertions import until
from tests.conversations.chat.conversation_helpers import (
    has_asked,
    list_ids,
    list_messages,
    send_chat,
)
from tests.conversations.chat.database import execute
from tests.conversations.chat.delegation_scripts import add_sub_agent, build_call, reply_with_calls
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import World


async def _run_single_call(talk: Talker, call: tuple[str, Any]) -> dict[str, Any]:
    """Runs a turn with one call. Adds the tool message for the model as `model_message`."""
    talk.script(reply_with_calls(call), Reply(texts=["I see."]))
    reply = await talk.say("Hello")
    assert reply["message"]["content"] == "I see."
    (call_result,) = reply["tool_calls"]
    message = talk.asked[-1]["messages"][-1]
    assert message["role"] == "tool"
    result: dict[str, Any] = {**call_result, "model_message": message["content"]}
    return result


async def test_a_call_of_an_unknown_tool_fails(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    call = await _run_single_call(talk, ("launch_rockets", {"task": "Now"}))
    assert (call["tool"], call["tool_id"], call["status"]) == ("launch_rockets", None, "failed")
    assert call["input"] == {"task": "Now"}
    assert call["output"] == {"error": "there is no tool launch_rockets"}
    assert json.loads(call["model_message"]) == call["output"]
    assert child.asked == []


async def test_a_call_by_an_agent_without_tools_fails(talk: Talker) -> None:
    call = await _run_single_call(talk, build_call("kid"))
    assert (call["status"], call["tool"]) == ("failed", "delegate_to_kid")


async def test_a_call_with_invalid_arguments_fails(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for arguments, expected in (
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
    ):
        with subtests.test(arguments=arguments, expected=expected):
            talk = await talker(world, models)
            child = await add_sub_agent(talk, "Kid")
            call = await _run_single_call(talk, ("delegate_to_kid", arguments))
            assert (call["status"], call["input"]) == ("failed", expected)
            assert set(call["output"]) == {"error"}
            assert json.loads(call["model_message"]) == call["output"]
            assert child.asked == []


async def test_additional_arguments_are_ignored(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    arguments = {"task": "Do it", "agent_id": "agt_other", "temperature": 9}
    call = await _run_single_call(talk, ("delegate_to_kid", arguments))
    assert (call["status"], call["input"]) == ("completed", arguments)
    assert child.asked[0]["messages"][1]["content"] == "Do it"


async def test_an_escaped_nul_in_the_arguments_does_not_end_the_turn(talk: Talker) -> None:
    await add_sub_agent(talk, "Kid")
    talk.script(
        reply_with_calls(("delegate_to_kid", '{"task": "a\\u0000b"}')), Reply(texts=["Fine."])
    )
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"]["content"] == "Fine."


async def test_a_nul_in_the_name_of_a_tool_does_not_end_the_turn(talk: Talker) -> None:
    await add_sub_agent(talk, "Kid")
    talk.script(reply_with_calls(("delegate\x00", {})), Reply(texts=["Fine."]))
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 200, answer.text


@pytest.fixture
async def refused_text(services: Services) -> AsyncIterator[str]:
    """A text that a database trigger refuses to store."""
    text = new_id("refused")
    await execute(
        services,
        f"""
        CREATE FUNCTION refuse_text() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$;
        CREATE TRIGGER refuse_text BEFORE INSERT ON conversation_entries
        FOR EACH ROW WHEN (NEW.content = '{text}') EXECUTE FUNCTION refuse_text();
        """,
    )
    yield text
    await execute(services, "DROP FUNCTION refuse_text() CASCADE")


async def test_a_turn_that_cannot_be_stored_releases_its_conversation(
    talk: Talker, refused_text: str
) -> None:
    """The failed turn does not leave the conversation busy."""
    talk.script(Reply(), Reply(texts=[refused_text]), Reply(texts=["Back."]))
    first = await talk.say("One")
    body = {"message": "Two", "conversation_id": first["conversation_id"]}
    failed = await talk.client.post(f"{talk.path}/chat", body)
    assert failed.status_code == 500
    answer = await talk.client.post(f"{talk.path}/chat", {**body, "message": "Three"})
    assert answer.status_code == 200, answer.text


async def test_a_call_of_a_child_whose_model_fails_fails(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(status=400, message="no such luck"))
    call = await _run_single_call(talk, build_call("kid"))
    assert call["status"] == "failed"
    assert call["output"]["code"] == "provider_rejected"
    assert call["output"]["error"] == "it could not answer"
    assert json.loads(call["model_message"]) == call["output"]


async def test_a_call_of_a_child_without_a_key_for_its_model_fails(
    talk: Talker,
) -> None:
    await add_sub_agent(talk, "Kid", primary_model="gpt-4o")
    call = await _run_single_call(talk, build_call("kid"))
    assert (call["status"], call["output"]["code"]) == ("failed", "model_not_configured")


async def test_a_failing_grandchild_does_not_fail_the_call_of_the_child(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    grandchild = await add_sub_agent(child, "Grandkid")
    grandchild.script(Reply(status=400))
    child.script(reply_with_calls(build_call("grandkid")), Reply(texts=["I did it myself."]))
    talk.script(reply_with_calls(build_call("kid")), Reply())
    outer, inner = (await talk.say("Hello"))["tool_calls"]
    assert (outer["status"], outer["output"]) == ("completed", "I did it myself.")
    assert (inner["status"], inner["parent_id"]) == ("failed", outer["id"])


async def test_a_failing_call_does_not_affect_other_calls(talk: Talker) -> None:
    bad, good = await add_sub_agent(talk, "Bad"), await add_sub_agent(talk, "Good")
    bad.script(Reply(status=400))
    good.script(Reply(texts=["Done."]))
    talk.script(reply_with_calls(build_call("bad"), build_call("good"), ("nothing", {})), Reply())
    calls = (await talk.say("Hello"))["tool_calls"]
    assert [call["status"] for call in calls] == ["failed", "completed", "failed"]
    assert calls[1]["output"] == "Done."


async def test_a_call_of_a_child_that_is_archived_or_deleted_during_the_turn_fails(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for method, code in (("PUT", "agent_archived"), ("DELETE", "agent_not_found")):
        with subtests.test(method=method, code=code):
            talk = await talker(world, models)
            hold = asyncio.Event()
            child = await add_sub_agent(talk, "Kid")
            # The model waits before each text and sends calls after the last one.
            talk.script(reply_with_calls(build_call("kid"), texts=["Wait."], hold=hold), Reply())
            turn = asyncio.create_task(talk.say("Hello"))
            await until(partial(has_asked, talk))
            content = {"json": {"status": "archived"}} if method == "PUT" else {}
            assert (await talk.client(method, child.path, **content)).status_code in {200, 204}
            hold.set()
            (call,) = (await turn)["tool_calls"]
            assert (call["status"], call["output"]["code"]) == ("failed", code)
            assert child.asked == []


async def test_a_child_without_an_answer_gives_an_empty_output(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=[]))
    call = await _run_single_call(talk, build_call("kid"))
    assert (call["status"], call["output"], call["model_message"]) == ("completed", "", "")


async def test_calls_before_a_failure_of_the_parents_model_are_stored(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Done."], usage=(30, 3)))
    talk.script(reply_with_calls(build_call("kid"), usage=(10, 1)), Reply(status=400))
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "provider_rejected"
    (conversation_id,) = await list_ids(talk)
    _, reply = await list_messages(talk, conversation_id)
    assert reply["status"] == "failed"
    assert [call["output"] for call in reply["tool_calls"]] == ["Done."]
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_tokens_used"] == 44
