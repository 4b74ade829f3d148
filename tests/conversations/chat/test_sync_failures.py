"""Synchronous chat when the model fails, and the events of a turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.domain.agents.llm import gateway, openai_adapter
from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import (
    list_event_data,
    list_ids,
    list_messages,
    send_chat,
)
from tests.conversations.chat.database import execute
from tests.conversations.chat.delegation_scripts import list_offered
from tests.conversations.chat.job_helpers import RETRY_AT_ONCE
from tests.conversations.chat.log_helpers import set_log_settings
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import World


async def test_a_models_refusal_is_reported_with_its_reason(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for status, reason, requests, ours in (
        (400, "refused", 1, (400, "provider_rejected")),
        (401, "refused", 1, (409, "model_not_configured")),
        (404, "refused", 1, (400, "provider_rejected")),
        (408, "timeout", 1, (502, "provider_error")),
        (422, "refused", 1, (422, "provider_rejected")),
        (429, "rate_limited", 3, (429, "rate_limited")),
        (500, "unavailable", 3, (502, "provider_error")),
    ):
        with subtests.test(status=status, reason=reason, requests=requests):
            talk = await talker(world, models)
            talk.script(Reply(status=status, message="not today", headers=RETRY_AT_ONCE))
            answer = await send_chat(talk.client, talk)
            error = refused(answer, *ours)
            [conversation_id] = await list_ids(talk)
            failed = (await list_messages(talk, conversation_id))[1]
            details = {
                "model": f"scripted/{talk.model}",
                "reason": reason,
                "provider_status": status,
                "conversation_id": conversation_id,
                "message_id": failed["id"],
            }
            if requests > 1:
                assert answer.headers["retry-after"] == "1"
                assert error["details"] == {**details, "retry_after": 1}
            else:
                assert answer.headers["x-should-retry"] == "false"
                assert error["details"] == details
            assert "not today" in error["message"]
            # Transient failures are retried; refusals and timeouts are not.
            assert len(talk.asked) == requests


async def test_a_model_that_does_not_answer_in_time_is_a_timeout(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_adapter, "TOTAL_SECONDS", 0.1)
    talk.script(Reply(first_delay=0.5))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert error["details"]["reason"] == "timeout"
    assert len(talk.asked) == 1


async def test_a_model_that_drops_the_connection_is_unreachable(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.01,))
    talk.script(Reply(drop_after=0))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert error["details"]["reason"] == "unreachable"


async def test_a_malformed_answer_is_broken(
    world: World, models: ModelServer, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for raw in (
        b"<html>Welcome</html>",
        b"\xff\xff",
        b"",
        b"[]",
        b'{"choices": 5}',
        b'{"choices": [{"message": {"content": "cut',
        b'{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "stop"}]}',
        b'{"choices": []}',
    ):
        with subtests.test(raw=raw):
            talk = await talker(world, models)
            monkeypatch.setattr(gateway, "RETRY_SECONDS", ())
            talk.script(Reply(raw=raw))
            error = refused(await send_chat(talk.client, talk), 502, "provider_error")
            assert error["details"]["reason"] == "broken"


async def test_a_transient_failure_is_retried(talk: Talker) -> None:
    talk.script(
        Reply(status=429, headers=RETRY_AT_ONCE), Reply(status=500, headers=RETRY_AT_ONCE), Reply()
    )
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == "Hello there"
    assert reply["usage"]["total_tokens"] == 18
    assert len(talk.asked) == 3


async def test_a_long_retry_after_is_not_waited_for(talk: Talker) -> None:
    talk.script(Reply(status=429, headers={"Retry-After": "3600"}))
    answer = await send_chat(talk.client, talk)
    error = refused(answer, 429, "rate_limited")
    assert answer.headers["retry-after"] == "3600"
    assert error["details"]["reason"] == "rate_limited"
    assert len(talk.asked) == 1


async def test_a_failure_does_not_contain_the_provider_key(talk: Talker) -> None:
    talk.script(Reply(status=401, message="wrong key sk-scripted-0123456789 given"))
    answer = await send_chat(talk.client, talk)
    assert answer.status_code == 409
    assert "sk-scripted" not in answer.text


@asynccontextmanager
async def _refuse_usage_rows(services: Services, agent_id: str) -> AsyncIterator[None]:
    """Postgres refuses the usage of the agent's turns, while the block runs."""
    refuse = f"""
        CREATE FUNCTION refuse_usage() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.agent_id = '{agent_id}' THEN RAISE EXCEPTION 'no room'; END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER refuse_usage BEFORE INSERT ON usage
            FOR EACH ROW EXECUTE FUNCTION refuse_usage();
    """
    await execute(services, refuse)
    try:
        yield
    finally:
        await execute(services, "DROP FUNCTION refuse_usage() CASCADE")


async def test_a_reply_that_cannot_be_stored_is_not_sent(talk: Talker, services: Services) -> None:
    first = await talk.say("One")
    conversation = {"conversation_id": first["conversation_id"]}
    async with _refuse_usage_rows(services, talk.agent_id):
        answer = await send_chat(talk.client, talk, "Two", **conversation)
    refused(answer, 500, "internal_error")
    assert "no room" not in answer.text
    assert len(await list_messages(talk, first["conversation_id"])) == 2


async def test_a_reply_that_cannot_be_stored_leaves_the_conversation_free(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    conversation = {"conversation_id": first["conversation_id"]}
    async with _refuse_usage_rows(services, talk.agent_id):
        await send_chat(talk.client, talk, "Two", **conversation)
    assert (await send_chat(talk.client, talk, "Three", **conversation)).status_code == 200


async def test_implausible_usage_does_not_lose_the_reply(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for usage in ((0, 0), (-5, -5), (3_000_000_000, 1), (10**30, 10**30)):
        with subtests.test(usage=usage):
            talk = await talker(world, models)
            talk.script(Reply(usage=usage))
            reply = await talk.say("Hi")
            assert reply["message"]["content"] == "Hello there"
            assert min(reply["usage"].values()) >= 0


async def test_usage_that_the_provider_does_not_report_is_estimated(talk: Talker) -> None:
    talk.script(Reply(usage=None))
    usage = (await talk.say("Hi"))["usage"]
    assert usage["prompt_tokens"] > 0
    assert usage["completion_tokens"] > 0
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_any_text_of_a_model_is_sent_and_stored(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for text, stored in (
        ("a\0b", "ab"),
        ("", ""),
        ("ä\u2028🦜\r\n\t", "ä\u2028🦜\r\n\t"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("x" * 300_000, "x" * 300_000),
    ):
        with subtests.test(text=text, stored=stored):
            talk = await talker(world, models)
            talk.script(Reply(texts=[text]))
            reply = await talk.say("Hi")
            assert reply["message"]["content"] == stored
            assert (await list_messages(talk, reply["conversation_id"]))[1]["content"] == stored


async def test_invalid_arguments_of_a_call_do_not_end_the_turn(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for name, arguments in {
        "NUL in a value": r'{"task": "a\u0000b"}',
        "NUL in a name": r'{"task": "x", "a\u0000": 1}',
        "a huge number": '{"task": 123456789012345678901234567890}',
        "half a character": r'{"task": "\ud800"}',
        "cut off": '{"task": ',
        "nothing": "",
        "no object": "[1, 2]",
        "null": "null",
        "wrong type": '{"task": 5}',
        "wrong name": '{"other": "x"}',
    }.items():
        with subtests.test(name):
            talk = await talker(world, models)
            await talk.with_helper()
            talk.script(
                Reply(texts=[], calls=[("delegate_to_helper", arguments)]), Reply(texts=["Done"])
            )
            answer = await send_chat(talk.client, talk)
            assert answer.status_code == 200, answer.text
            assert answer.json()["message"]["content"] == "Done"
            assert [call["tool"] for call in answer.json()["tool_calls"]] == ["Helper"]
            messages = await list_messages(talk, answer.json()["conversation_id"])
            assert messages[1]["tool_calls"] == answer.json()["tool_calls"]


async def test_deeply_nested_arguments_do_not_end_the_turn(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for depth in (200, 900, 930, 950, 960, 970, 980, 990, 3000):
        with subtests.test(depth=depth):
            talk = await talker(world, models)
            await talk.with_helper()
            nested = "[" * depth + "]" * depth
            call = ("delegate_to_helper", f'{{"task": {nested}}}')
            talk.script(Reply(texts=[], calls=[call]), Reply(texts=["Done"]))
            answer = await send_chat(talk.client, talk)
            assert answer.status_code == 200, answer.text[:300]
            assert answer.json()["message"]["content"] == "Done"


async def test_the_model_learns_that_a_tool_does_not_exist(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for name in ("no_such_tool", "", "a\0b", "x" * 5000, "ä"):
        with subtests.test(name=name):
            talk = await talker(world, models)
            await talk.with_helper()
            talk.script(Reply(texts=[], calls=[(name, {"task": "x"})]), Reply(texts=["Done"]))
            answer = await send_chat(talk.client, talk)
            assert answer.status_code == 200, answer.text[:300]
            call = answer.json()["tool_calls"][0]
            assert call["status"] == "failed"
            assert "there is no tool" in call["output"]["error"]
            assert "there is no tool" in talk.asked[1]["messages"][-1]["content"]


async def test_a_failing_sub_agent_does_not_fail_the_turn(talk: Talker) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(status=400, message="helper is ill"))
    call = ("delegate_to_helper", {"task": "x"})
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["I managed alone"]))
    reply = await talk.say("Hi")
    assert reply["message"]["content"] == "I managed alone"
    assert reply["tool_calls"][0]["status"] == "failed"
    assert reply["tool_calls"][0]["output"]["code"] == "provider_rejected"


async def test_a_turn_has_ten_rounds_of_calls_at_most(talk: Talker) -> None:
    helper = await talk.with_helper()
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", {"task": "again"})]))
    reply = await talk.say("Hi")
    assert len(reply["tool_calls"]) == 10
    assert len(helper.asked) == 10
    # The eleventh request offers no tools.
    assert len(talk.asked) == 11
    assert list_offered(talk.asked[-1]) == []


async def test_usage_sums_every_model_call_of_the_turn(talk: Talker) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "x"})
    talk.script(Reply(texts=[], calls=[call, call], usage=(5, 1)), Reply(usage=(7, 2)))
    usage = (await talk.say("Hi"))["usage"]
    assert usage == {"prompt_tokens": 212, "completion_tokens": 23, "total_tokens": 235}


async def test_rounds_before_a_failure_are_stored(talk: Talker) -> None:
    await talk.with_helper()
    call = ("delegate_to_helper", {"task": "x"})
    talk.script(Reply(texts=["Let me ask."], calls=[call]), Reply(status=400), Reply())
    refused(await send_chat(talk.client, talk, "Hi"), 400, "provider_rejected")
    [conversation_id] = await list_ids(talk)
    messages = await list_messages(talk, conversation_id)
    assert [(item["content"], item["status"]) for item in messages] == [
        ("Hi", "complete"),
        ("Let me ask.", "failed"),
    ]
    await talk.say("And now?", conversation_id=conversation_id)


async def test_a_turn_emits_its_events_in_order(talk: Talker) -> None:
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
    started, question, answer = (entry["data"] for entry in entries)
    assert started == {**common, "user_id": talk.client.user_id, "source": "console"}
    assert question.pop("message_id").startswith("msg_")
    assert question == {**common, "role": "user", "status": "complete", "content": "Hi"}
    assert answer == {
        **common,
        "message_id": reply["message"]["id"],
        "role": "assistant",
        "status": "complete",
        "content": "Hello there",
    }


async def test_the_start_of_a_conversation_is_emitted_once(talk: Talker) -> None:
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    assert len(await list_event_data(talk, "agent.chat.started")) == 1
    assert len(await list_event_data(talk, "agent.chat.message")) == 4


async def test_events_contain_no_messages_if_messages_are_not_logged(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False)
    reply = await talk.say("My secret")
    events = await list_event_data(talk, "agent.chat.message")
    assert [data["content"] for data in events] == [None, None]
    # The conversation has the messages.
    messages = await list_messages(talk, reply["conversation_id"])
    assert [item["content"] for item in messages] == ["My secret", "Hello there"]
