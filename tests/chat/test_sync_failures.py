"""Synchronous chat when the model fails, and the events of a turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.domain.models import gateway, openai_adapter
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.chat.sync_helpers import (
    count_conversations,
    list_events,
    list_messages,
    read_value,
    send_chat,
)
from tests.model_server import Reply
from tests.talk import Talker

AT_ONCE = {"Retry-After": "0"}


@pytest.mark.parametrize(
    ("status", "reason", "asked"),
    [
        (400, "refused", 1),
        (401, "refused", 1),
        (403, "refused", 1),
        (404, "refused", 1),
        (408, "timeout", 1),
        (429, "rate_limited", 3),
        (500, "unavailable", 3),
        (503, "unavailable", 3),
        (504, "timeout", 1),
    ],
)
async def test_a_models_refusal_is_told_with_its_reason(
    talk: Talker, status: int, reason: str, asked: int
) -> None:
    talk.script(Reply(status=status, message="not today", headers=AT_ONCE))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert error["details"] == {
        "model": f"scripted/{talk.model}",
        "reason": reason,
        "provider_status": status,
    }
    assert "not today" in error["message"]
    # What may pass is asked again. What is refused is not, nor what somebody may still work on.
    assert len(talk.asked) == asked


async def test_a_model_that_says_nothing_in_time_is_a_timeout(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_adapter, "TOTAL_SECONDS", 0.1)
    talk.script(Reply(first_delay=0.5))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert error["details"]["reason"] == "timeout"
    assert len(talk.asked) == 1


async def test_a_model_that_nobody_serves_is_unreachable(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.01,))
    talk.script(Reply(drop_after=0))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert error["details"]["reason"] == "unreachable"


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>Welcome</html>",
        b"\xff\xff",
        b"",
        b"[]",
        b'{"choices": 5}',
        b'{"choices": [{"message": {"content": "cut',
        b'{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "stop"}]}',
        b'{"choices": []}',
    ],
)
async def test_an_answer_that_is_none_is_broken(
    talk: Talker, raw: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", ())
    talk.script(Reply(raw=raw))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert error["details"]["reason"] == "broken"


async def test_a_passing_failure_is_asked_again_behind_the_scenes(talk: Talker) -> None:
    talk.script(Reply(status=429, headers=AT_ONCE), Reply(status=500, headers=AT_ONCE), Reply())
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == "Hello there"
    assert reply["usage"]["total_tokens"] == 18
    assert len(talk.asked) == 3


async def test_a_model_that_asks_for_a_long_pause_is_not_waited_for(talk: Talker) -> None:
    talk.script(Reply(status=429, headers={"Retry-After": "3600"}))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert error["details"]["reason"] == "rate_limited"
    assert len(talk.asked) == 1


async def test_a_failure_never_tells_the_providers_key(talk: Talker) -> None:
    talk.script(Reply(status=401, message="wrong key sk-scripted-0123456789 given"))
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 502
    assert "sk-scripted" not in answer.text


async def test_nothing_that_was_said_is_kept_after_a_failure(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    kept = await list_messages(talk, first["conversation_id"])
    talk.script(Reply(status=400), Reply(texts=["Back"]))
    again = {"conversation_id": first["conversation_id"]}
    refused(await send_chat(talk.client, talk, "Lost", **again), 502, "provider_error")
    assert await list_messages(talk, first["conversation_id"]) == kept
    assert len(await list_events(talk, "agent.chat.message")) == 2
    rows = "SELECT count(*) FROM usage WHERE agent_id = $1"
    assert await read_value(services, rows, talk.agent_id) == 1
    # And the conversation is free at once.
    assert (await talk.say("Two", **again))["message"]["content"] == "Back"
    assert "Lost" not in str(talk.asked[-1])


async def test_a_first_turn_that_failed_leaves_no_empty_conversation(talk: Talker) -> None:
    talk.script(Reply(status=400))
    refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert await count_conversations(talk) == 0


@asynccontextmanager
async def without_free_connections(services: Services, agent_id: str) -> AsyncIterator[None]:
    """Postgres refuses what the agent's turns used."""
    refuse = f"""
        CREATE FUNCTION refuse_usage() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.agent_id = '{agent_id}' THEN RAISE EXCEPTION 'no room'; END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER refuse_usage BEFORE INSERT ON usage
            FOR EACH ROW EXECUTE FUNCTION refuse_usage();
    """
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(refuse)
    try:
        yield
    finally:
        async with services.db.tx(ALL_TENANTS) as tx:
            await (await tx.raw()).execute("DROP FUNCTION refuse_usage() CASCADE")


async def test_a_reply_that_cannot_be_kept_is_not_told(talk: Talker, services: Services) -> None:
    first = await talk.say("One")
    again = {"conversation_id": first["conversation_id"]}
    async with without_free_connections(services, talk.agent_id):
        answer = await send_chat(talk.client, talk, "Two", **again)
    refused(answer, 500, "internal_error")
    assert "no room" not in answer.text
    assert len(await list_messages(talk, first["conversation_id"])) == 2


async def test_a_reply_that_cannot_be_kept_leaves_the_conversation_free(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    again = {"conversation_id": first["conversation_id"]}
    async with without_free_connections(services, talk.agent_id):
        await send_chat(talk.client, talk, "Two", **again)
    assert (await send_chat(talk.client, talk, "Three", **again)).status_code == 200


@pytest.mark.parametrize("usage", [(0, 0), (-5, -5), (3_000_000_000, 1), (10**30, 10**30)])
async def test_whatever_a_provider_counts_the_reply_comes(
    talk: Talker, usage: tuple[int, int]
) -> None:
    talk.script(Reply(usage=usage))
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == "Hello there"
    assert min(reply["usage"].values()) >= 0


async def test_a_provider_that_counts_nothing_is_estimated(talk: Talker) -> None:
    talk.script(Reply(usage=None))
    usage = (await talk.say("Hi"))["usage"]
    assert usage["prompt_tokens"] > 0
    assert usage["completion_tokens"] > 0
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("a\0b", "ab"),
        ("", ""),
        ("ä\u2028🦜\r\n\t", "ä\u2028🦜\r\n\t"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("x" * 300_000, "x" * 300_000),
    ],
)
async def test_whatever_a_model_says_is_told_and_kept(talk: Talker, said: str, kept: str) -> None:
    talk.script(Reply(texts=[said]))
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == kept
    assert (await list_messages(talk, reply["conversation_id"]))[1]["content"] == kept


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(r'{"task": "a\u0000b"}', id="NUL in a value"),
        pytest.param(r'{"task": "x", "a\u0000": 1}', id="NUL in a name"),
        pytest.param('{"task": 123456789012345678901234567890}', id="a huge number"),
        pytest.param(r'{"task": "\ud800"}', id="half a character"),
        pytest.param('{"task": ', id="cut off"),
        pytest.param("", id="nothing"),
        pytest.param("[1, 2]", id="no object"),
        pytest.param("null", id="null"),
        pytest.param('{"task": 5}', id="wrong type"),
        pytest.param('{"other": "x"}', id="wrong name"),
    ],
)
async def test_whatever_a_model_calls_with_the_turn_goes_on(talk: Talker, arguments: str) -> None:
    await talk.with_helper()
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", arguments)]), Reply(texts=["Done"]))
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"]["content"] == "Done"
    assert [call["tool"] for call in answer.json()["tool_calls"]] == ["Helper"]
    kept = await list_messages(talk, answer.json()["conversation_id"])
    assert kept[1]["tool_calls"] == answer.json()["tool_calls"]


@pytest.mark.parametrize("depth", [200, 900, 930, 950, 960, 970, 980, 990, 3000])
async def test_arguments_however_deep_do_not_break_a_turn(talk: Talker, depth: int) -> None:
    await talk.with_helper()
    nested = "[" * depth + "]" * depth
    call = ("delegate_to_helper", f'{{"task": {nested}}}')
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["Done"]))
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 200, answer.text[:300]
    assert answer.json()["message"]["content"] == "Done"


@pytest.mark.parametrize("name", ["no_such_tool", "", "a\0b", "x" * 5000, "ä"])
async def test_a_call_of_something_that_is_not_there_is_told_to_the_model(
    talk: Talker, name: str
) -> None:
    await talk.with_helper()
    talk.script(Reply(texts=[], calls=[(name, {"task": "x"})]), Reply(texts=["Done"]))
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 200, answer.text[:300]
    call = answer.json()["tool_calls"][0]
    assert call["status"] == "failed"
    assert "there is no tool" in call["output"]["error"]
    assert "there is no tool" in talk.asked[1]["messages"][-1]["content"]


async def test_a_failing_helper_is_told_to_the_model_and_not_to_the_caller(talk: Talker) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(status=400, message="helper is ill"))
    call = ("delegate_to_helper", {"task": "x"})
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["I managed alone"]))
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == "I managed alone"
    assert reply["tool_calls"][0]["status"] == "failed"
    assert reply["tool_calls"][0]["output"]["code"] == "provider_error"


async def test_a_model_that_only_calls_is_stopped_after_ten_rounds(talk: Talker) -> None:
    helper = await talk.with_helper()
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", {"task": "again"})]))
    reply = await talk.say("Hi")
    assert len(reply["tool_calls"]) == 10
    assert len(helper.asked) == 10
    # The eleventh question lets nothing be called.
    assert len(talk.asked) == 11
    assert talk.asked[-1].get("tool_choice") == "none" or "tools" not in talk.asked[-1]


async def test_usage_sums_every_model_call_of_the_turn(talk: Talker) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "x"})
    talk.script(Reply(texts=[], calls=[call, call], usage=(5, 1)), Reply(usage=(7, 2)))
    usage = (await talk.say("Hi"))["usage"]
    assert usage == {"prompt_tokens": 212, "completion_tokens": 23, "total_tokens": 235}


async def test_a_question_answered_half_before_a_failure_keeps_its_half(talk: Talker) -> None:
    """The first round was said and done; only the second failed."""
    await talk.with_helper()
    call = ("delegate_to_helper", {"task": "x"})
    talk.script(Reply(texts=["Let me ask."], calls=[call]), Reply(status=400), Reply())
    refused(await send_chat(talk.client, talk, "Hi"), 502, "provider_error")
    listed = (await talk.client.get(f"{talk.path}/conversations")).json()["data"]
    kept = await list_messages(talk, listed[0]["id"])
    assert [(item["content"], item["status"]) for item in kept] == [
        ("Hi", "complete"),
        ("Let me ask.", "interrupted"),
    ]
    await talk.say("And now?", conversation_id=listed[0]["id"])


async def test_a_turn_leaves_its_events_in_order(talk: Talker) -> None:
    headers = {"x-correlation-id": f"cor_{talk.agent_id}"}
    body = {"message": "Hi"}
    reply = (await talk.client.post(f"{talk.path}/chat", body, headers=headers)).json()
    trace = await talk.client.get(f"/api/v1/event-log/trace/cor_{talk.agent_id}")
    entries = trace.json()["data"]
    assert [entry["type"] for entry in entries] == [
        "agent.chat.started",
        "agent.chat.message",
        "agent.chat.message",
    ]
    common = {"agent_id": talk.agent_id, "conversation_id": reply["conversation_id"]}
    started, asked, answered = (entry["data"] for entry in entries)
    assert started == {**common, "user_id": talk.client.user_id, "source": "console"}
    question_id = asked.pop("message_id")
    assert question_id.startswith("msg_")
    assert asked == {**common, "role": "user", "status": "complete", "content": "Hi"}
    assert answered == {
        **common,
        "message_id": reply["message"]["id"],
        "role": "assistant",
        "status": "complete",
        "content": "Hello there",
    }


async def test_a_conversation_starts_once(talk: Talker) -> None:
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    assert len(await list_events(talk, "agent.chat.started")) == 1
    assert len(await list_events(talk, "agent.chat.message")) == 4


async def test_events_hold_no_words_where_messages_may_not_be_logged(talk: Talker) -> None:
    await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    reply = await talk.say("My secret")
    told = await list_events(talk, "agent.chat.message")
    assert [entry["data"]["content"] for entry in told] == [None, None]
    # The conversation itself still has them.
    kept = await list_messages(talk, reply["conversation_id"])
    assert [item["content"] for item in kept] == ["My secret", "Hello there"]
