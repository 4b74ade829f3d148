"""Which entries of a turn are logged, and which events contain messages."""

import pytest

from app.services import Services
from tests.conversations.chat.conversation_helpers import (
    create_visitor_headers,
    list_event_data,
    list_messages,
)
from tests.conversations.chat.delegation_scripts import script_delegation
from tests.conversations.chat.job_helpers import run_new_job
from tests.conversations.chat.log_helpers import ENTRY_KEYS, list_log_entries, set_log_settings
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, events_in, talker
from tests.world import World


async def _list_entry_types(talk: Talker) -> list[str]:
    """Returns the types of all log entries, the oldest first."""
    return [item["type"] for item in reversed(await list_log_entries(talk))]


async def test_a_turn_is_logged_completely_by_default(delegating_agent: Talker) -> None:
    reply = await delegating_agent.say("Hello")
    entries = list(reversed(await list_log_entries(delegating_agent)))
    assert all(set(entry) == ENTRY_KEYS for entry in entries)
    assert {entry["conversation_id"] for entry in entries} == {reply["conversation_id"]}
    contents = [(entry["type"], entry["role"], entry["content"]) for entry in entries]
    assert contents == [
        ("message", "user", "Hello"),
        ("tool_call", "tool", None),
        ("message", "assistant", "Fine."),
        ("token_usage", None, None),
        ("token_usage", None, None),
    ]
    (call,) = reply["tool_calls"]
    assert {name: entries[1]["data"][name] for name in call} == call
    tokens = [
        (entry["data"]["prompt_tokens"], entry["data"]["completion_tokens"])
        for entry in entries[3:]
    ]
    assert sorted(tokens) == [(30, 3), (300, 30)]


async def test_disabled_entry_types_are_not_in_the_log(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for settings, expected in (
        ({"log_messages": False}, ["tool_call", "token_usage", "token_usage"]),
        ({"log_tool_calls": False}, ["message", "message", "token_usage", "token_usage"]),
        ({"log_token_usage": False}, ["message", "tool_call", "message"]),
        ({"log_messages": False, "log_tool_calls": False, "log_token_usage": False}, []),
    ):
        with subtests.test(settings=settings, expected=expected):
            talk = await talker(world, models)
            await script_delegation(talk)
            await set_log_settings(talk, **settings)
            await talk.say("Hello")
            assert await _list_entry_types(talk) == expected


async def test_filters_do_not_return_disabled_entries(
    delegating_agent: Talker, subtests: pytest.Subtests
) -> None:
    await set_log_settings(
        delegating_agent, log_messages=False, log_tool_calls=False, log_token_usage=False
    )
    reply = await delegating_agent.say("Hello")
    ids = {"conversation_id": reply["conversation_id"]}
    assert await list_log_entries(delegating_agent, **ids) == []
    for kind in ("message", "tool_call", "token_usage"):
        with subtests.test(kind=kind):
            assert await list_log_entries(delegating_agent, type=kind) == []


async def test_a_conversation_has_its_messages_even_if_nothing_is_logged(
    delegating_agent: Talker,
) -> None:
    await set_log_settings(
        delegating_agent, log_messages=False, log_tool_calls=False, log_token_usage=False
    )
    reply = await delegating_agent.say("Hello")
    user_message, reply_message = await list_messages(delegating_agent, reply["conversation_id"])
    assert (user_message["content"], reply_message["content"]) == ("Hello", "Fine.")
    assert reply_message["tool_calls"] == reply["tool_calls"]
    assert len(reply_message["tool_calls"]) == 1


async def test_the_model_receives_messages_that_are_not_logged(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False)
    first = await talk.say("My name is Ada.")
    await talk.say("Who am I?", conversation_id=first["conversation_id"])
    contents = [message["content"] for message in talk.asked[-1]["messages"]]
    assert contents[1:] == ["My name is Ada.", "Hello there", "Who am I?"]


async def test_statistics_count_turns_that_are_not_logged(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False, log_token_usage=False)
    talk.script(Reply(usage=(10, 5)))
    await talk.say("Hello")
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert (stats["total_messages"], stats["total_tokens_used"]) == (2, 15)


async def test_settings_apply_to_later_messages_only(talk: Talker) -> None:
    """A change neither removes earlier entries nor adds them later."""
    talk.script(Reply(texts=["Fine."]))
    await talk.say("First")
    await set_log_settings(talk, log_messages=False)
    await talk.say("Second")
    await set_log_settings(talk, log_messages=True)
    await talk.say("Third")
    contents = [
        item["content"]
        for item in await list_log_entries(talk, type="message")
        if item["role"] == "user"
    ]
    assert contents == ["Third", "First"]


async def test_settings_of_one_agent_do_not_affect_another(talk: Talker) -> None:
    other = await talk.agent("Other")
    await set_log_settings(talk, log_messages=False)
    await other.say("Hello")
    assert await _list_entry_types(other) == ["message", "message", "token_usage"]


async def test_settings_apply_to_streamed_turns(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False, log_token_usage=False)
    answer = await talk.client.post(f"{talk.path}/chat/stream", {"message": "Hello"})
    assert events_in(answer.text)[-1][0] == "message_stop"
    assert await list_log_entries(talk) == []


async def test_settings_apply_to_turns_of_visitors(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False, log_token_usage=False)
    answer = await talk.world.anonymous().post(
        f"/api/v1/public/agents/{talk.agent_id}/chat",
        {"session_id": "s", "message": "Hello"},
        headers=await create_visitor_headers(talk),
    )
    assert answer.status_code == 200
    assert await list_log_entries(talk) == []
    events = await list_event_data(talk, "agent.chat.message")
    assert [data["content"] for data in events] == [None, None]


async def test_events_contain_the_messages(talk: Talker) -> None:
    talk.script(Reply(texts=["Fine."]))
    await talk.say("Hello")
    events = await list_event_data(talk, "agent.chat.message")
    assert [(data["role"], data["content"]) for data in events] == [
        ("user", "Hello"),
        ("assistant", "Fine."),
    ]


async def test_events_contain_no_messages_if_messages_are_not_logged(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False)
    talk.script(Reply(texts=["Fine secret."]))
    reply = await talk.say("Hello secret")
    events = await list_event_data(talk, "agent.chat.message")
    assert [(data["role"], data["content"]) for data in events] == [
        ("user", None),
        ("assistant", None),
    ]
    assert events[1]["message_id"] == reply["message"]["id"]
    assert events[1]["status"] == "complete"
    log = await talk.client.get("/api/v1/event-log", params={"per_page": 100})
    assert "secret" not in log.text


async def test_other_settings_do_not_affect_the_messages_in_events(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for settings in ({"log_tool_calls": False}, {"log_token_usage": False}):
        with subtests.test(settings=settings):
            talk = await talker(world, models)
            await set_log_settings(talk, **settings)
            await talk.say("Hello")
            events = await list_event_data(talk, "agent.chat.message")
            assert [data["content"] for data in events] == ["Hello", "Hello there"]


async def test_settings_apply_to_asynchronous_turns(talk: Talker, services: Services) -> None:
    await set_log_settings(talk, log_messages=False, log_token_usage=False)
    talk.script(Reply(texts=["Fine secret."]))
    job = await run_new_job(talk, services, "Hello secret")
    assert job["reply"]["message"]["content"] == "Fine secret."
    assert await list_log_entries(talk) == []
    log = await talk.client.get("/api/v1/event-log", params={"per_page": 100})
    assert "secret" not in log.text
    (completed,) = await list_event_data(talk, "agent.chat.completed")
    assert (completed["status"], completed["message"]) == ("completed", None)


async def test_an_asynchronous_turn_is_logged_by_default(talk: Talker, services: Services) -> None:
    talk.script(Reply(texts=["Fine."]))
    await run_new_job(talk, services, "Hello")
    assert await _list_entry_types(talk) == ["message", "message", "token_usage"]
    (completed,) = await list_event_data(talk, "agent.chat.completed")
    assert completed["message"] == "Fine."
