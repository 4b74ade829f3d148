"""GET /api/v1/conversations/:id/messages/:message_id/context: what the model of an answer saw."""

from typing import Any

import httpx

from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import conversation_path, list_messages
from tests.conversations.chat.database import fetch_rows, fetch_value
from tests.conversations.chat.log_helpers import list_log_entries, set_log_settings
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, events_in, talker
from tests.world import Client, World

_CONFIGURATION = {
    "model",
    "provider",
    "parameters",
    "version",
    "system_message",
    "passages",
    "tools",
}


async def _get(caller: Client, conversation_id: str, message_id: str) -> httpx.Response:
    return await caller.get(f"{conversation_path(conversation_id)}/messages/{message_id}/context")


async def _read(talk: Talker, reply: dict[str, Any], caller: Client | None = None) -> Any:
    ids = (reply["conversation_id"], reply["message"]["id"])
    answer = await _get(caller or talk.client, *ids)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_context_of_an_answer_is_what_the_model_was_asked_with(talk: Talker) -> None:
    await talk.with_helper()
    talk.script(Reply(usage=(40, 8)), Reply(usage=(50, 9)))
    first = await talk.say("One")
    reply = await talk.say(
        "Two", conversation_id=first["conversation_id"], context={"plan": "gold"}
    )
    found = await _read(talk, reply)
    asked = talk.asked[-1]
    assert found["system_message"] == asked["messages"][0]["content"]
    assert '{"plan":"gold"}' in found["system_message"]
    assert found["history_messages"] == len(asked["messages"]) - 2 == 2
    (tool,) = asked["tools"]
    assert found["tools"] == [
        {
            "name": tool["function"]["name"],
            "tool": "Helper",
            "description": tool["function"]["description"],
        }
    ]
    assert found["parameters"] == {
        "temperature": asked["temperature"],
        "max_tokens": asked["max_tokens"],
    }
    assert (found["model"], found["provider"]) == (f"scripted/{talk.model}", "scripted")
    assert found["usage"] == {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}
    assert 0 <= found["first_token_ms"] <= found["response_time_ms"]
    assert (found["version"], found["passages"], found["is_truncated"]) == (1, [], False)
    assert found["cost_usd"] == 0


async def test_the_context_of_an_answer_names_its_trace(talk: Talker) -> None:
    reply = await talk.say("Hi")
    found = await _read(talk, reply)
    trace = await talk.client.get(f"/api/v1/event-log/trace/{found['correlation_id']}")
    assert reply["message"]["id"] in trace.text


async def test_an_earlier_answer_keeps_the_prompt_that_it_had(
    talk: Talker, services: Services
) -> None:
    reply = await talk.say("Hi")
    before = await _read(talk, reply)
    await talk.client.put(talk.path, {"system_prompt": "Another prompt."})
    assert await _read(talk, reply) == before
    assert before["system_message"] == "You are a test."
    # The version has the prompt.
    sql = "SELECT data::text FROM conversation_entries WHERE agent_id = $1 AND type = 'context'"
    assert "You are a test." not in await fetch_value(services, sql, talk.agent_id)


async def test_the_context_of_a_preview_has_the_prompt_of_its_draft(talk: Talker) -> None:
    prompt = "<b>Draft</b> \"quoted\" 'prompt'"
    body = {"message": "Hi", "draft": {"system_prompt": prompt, "temperature": 0.125}}
    events = events_in((await talk.client.post(f"{talk.path}/preview", body)).text)
    answer = await _get(talk.client, *events[0][1].values())
    found = answer.json()
    assert (found["system_message"], found["version"]) == (prompt, None)
    assert found["parameters"]["temperature"] == 0.125


async def test_a_long_context_is_kept_in_part(talk: Talker) -> None:
    reply = await talk.say("Hi", context={"text": "x" * 50_000})
    found = await _read(talk, reply)
    assert found["is_truncated"] is True
    assert len(found["system_message"]) < 21_000


async def test_the_end_of_a_stream_has_the_figures_of_the_turn(talk: Talker, world: World) -> None:
    body = {"message": "Hi"}
    user = await world.user("agent_user", talk.client.tenant_id)
    for caller, cost in ((talk.client, 0), (user, None)):
        events = events_in((await caller.post(f"{talk.path}/chat/stream", body)).text)
        name, stop = events[-1]
        assert name == "message_stop"
        assert 0 <= stop["first_token_ms"] <= stop["response_time_ms"]
        assert stop["cost_usd"] == cost


async def test_callers_without_agents_write_see_no_configuration(
    talk: Talker, world: World
) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    reply = (await user.post(f"{talk.path}/chat", {"message": "Hi"})).json()
    found = await _read(talk, reply, user)
    assert {found[name] for name in _CONFIGURATION} == {None}
    assert (found["cost_usd"], found["correlation_id"]) == (None, None)
    assert found["usage"]["total_tokens"] > 0
    assert "You are a test." not in str(found)


async def test_only_readers_of_the_conversation_get_the_context(
    talk: Talker, world: World, models: ModelServer
) -> None:
    reply = await talk.say("Hi")
    ids = (reply["conversation_id"], reply["message"]["id"])
    colleague = await world.user("agent_user", talk.client.tenant_id)
    stranger = await talker(world, models)
    for caller in (colleague, stranger.client):
        refused(await _get(caller, *ids), 404, "conversation_not_found")
    own = await stranger.say("Mine")
    answer = await _get(stranger.client, own["conversation_id"], ids[1])
    refused(answer, 404, "message_not_found")
    question = (await list_messages(talk, ids[0]))[0]["id"]
    refused(await _get(talk.client, ids[0], question), 404, "message_not_found")
    refused(await _get(talk.client, ids[0], "ctx_x"), 404, "message_not_found")


async def test_the_context_follows_the_log_settings(talk: Talker) -> None:
    await set_log_settings(talk, log_messages=False)
    found = await _read(talk, await talk.say("Hi", context={"secret": "s3cret"}))
    assert (found["system_message"], found["passages"]) == (None, None)
    assert found["model"] == f"scripted/{talk.model}"
    assert found["usage"] is not None
    await set_log_settings(talk, log_messages=True, log_token_usage=False)
    found = await _read(talk, await talk.say("Hi"))
    assert (found["usage"], found["cost_usd"]) == (None, None)
    assert found["system_message"] == "You are a test."


async def test_the_context_is_no_entry_of_the_log_and_goes_with_its_conversation(
    talk: Talker, services: Services
) -> None:
    reply = await talk.say("Hi")
    kinds = {entry["type"] for entry in await list_log_entries(talk)}
    assert kinds == {"message", "token_usage"}
    sql = "SELECT id FROM conversation_entries WHERE agent_id = $1 AND type = 'context'"
    assert len(await fetch_rows(services, sql, talk.agent_id)) == 1
    path = conversation_path(reply["conversation_id"])
    assert (await talk.client.delete(path)).status_code == 204
    assert await fetch_rows(services, sql, talk.agent_id) == []


async def test_a_turn_of_an_earlier_release_has_no_context(
    talk: Talker, services: Services
) -> None:
    reply = await talk.say("Hi")
    sql = "DELETE FROM conversation_entries WHERE agent_id = $1 AND type = 'context'"
    await fetch_rows(services, sql, talk.agent_id)
    found = await _read(talk, reply)
    assert found.pop("message_id") == reply["message"]["id"]
    assert found.pop("is_truncated") is False
    assert found.pop("correlation_id").startswith("cor_")
    assert set(found.values()) == {None}
