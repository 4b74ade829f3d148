"""POST /api/v1/agents/:id/preview."""

from typing import Any

import httpx
import pytest

from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import (
    get_conversation,
    list_conversations,
    list_event_data,
    list_messages,
    send_chat,
    start_conversation,
)
from tests.conversations.chat.database import execute, fetch_rows, fetch_value
from tests.conversations.chat.log_helpers import get_stats, list_log_entries
from tests.conversations.chat.summary_helpers import list_ids, list_unread
from tests.identity.roles.api_calls import set_permissions
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, events_in, names_of, talker, texts_of
from tests.world import Client, World

Events = list[tuple[str, Any]]


async def _post(talk: Talker, caller: Client | None = None, **body: Any) -> httpx.Response:
    return await (caller or talk.client).post(f"{talk.path}/preview", {"message": "Hi", **body})


async def _preview(talk: Talker, **body: Any) -> Events:
    answer = await _post(talk, **body)
    assert answer.status_code == 200, answer.text
    events = events_in(answer.text)
    assert names_of(events) == ["message_start", "content_delta", "message_stop"]
    return events


def _ids(events: Events) -> tuple[str, str]:
    start = events[0][1]
    return start["conversation_id"], start["message_id"]


async def _replay(talk: Talker, message_id: str, **body: Any) -> httpx.Response:
    return await talk.client.post(f"{talk.path}/preview", {"replay_of": message_id, **body})


async def test_a_preview_answers_with_the_fields_of_the_draft(talk: Talker) -> None:
    draft = {"system_prompt": "Answer like a pirate.", "temperature": 0.25, "max_tokens": 77}
    assert texts_of(await _preview(talk, draft=draft, context={"plan": "gold"})) == "Hello there"
    asked = talk.asked[-1]
    assert asked["messages"][0]["content"].startswith("Answer like a pirate.")
    assert '{"plan":"gold"}' in asked["messages"][0]["content"]
    assert (asked["temperature"], asked["max_tokens"]) == (0.25, 77)
    await _preview(talk)
    assert talk.asked[-1]["messages"][0]["content"] == "You are a test."


async def test_a_preview_asks_the_model_of_the_draft_with_the_key_of_its_provider(
    talk: Talker, models: ModelServer
) -> None:
    key = {"provider": "elsewhere", "name": "K", "api_key": "sk-elsewhere", "base_url": models.url}
    assert (await talk.client.post("/api/v1/api-keys", key)).status_code == 201
    model = f"of-{talk.agent_id}"
    await _preview(talk, draft={"primary_model": f"elsewhere/{model}"})
    assert (len(models.asked(model)), len(talk.asked)) == (1, 0)


async def test_a_preview_changes_nothing_of_the_agent(talk: Talker) -> None:
    before = (await talk.client.get(talk.path)).json()
    draft = {
        "name": "Other",
        "system_prompt": "Other",
        "description": "Other",
        "status": "archived",
        "temperature": 0.1,
    }
    await _preview(talk, draft=draft)
    assert (await talk.client.get(talk.path)).json() == before
    versions = (await talk.client.get(f"{talk.path}/versions")).json()
    assert versions["pagination"]["total"] == 1


async def test_agents_of_every_status_can_be_previewed(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for status in ("draft", "published", "archived"):
        with subtests.test(status):
            agent = await talk.agent(status=status)
            assert texts_of(await _preview(agent)) == "Hello there"


async def test_a_preview_continues_previews_alone(talk: Talker) -> None:
    conversation_id, _ = _ids(await _preview(talk, message="One"))
    await _preview(talk, message="Two", conversation_id=conversation_id)
    said = [item["content"] for item in talk.asked[-1]["messages"][1:]]
    assert said == ["One", "Hello there", "Two"]
    live = await start_conversation(talk)
    refused(await _post(talk, conversation_id=live), 404, "conversation_not_found")
    answer = await send_chat(talk.client, talk, conversation_id=conversation_id)
    refused(answer, 404, "conversation_not_found")
    assert len(await list_messages(talk, live)) == 2


async def test_the_list_of_conversations_has_previews_on_request_alone(talk: Talker) -> None:
    preview, _ = _ids(await _preview(talk))
    live = await start_conversation(talk)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [live]),
        ({"source": "preview"}, [preview]),
        ({"source": "console"}, [live]),
        ({"source": "embed"}, []),
    ]
    for params, ids in cases:
        page = await list_conversations(talk, **params)
        assert [item["id"] for item in page["data"]] == ids
        assert page["pagination"]["total"] == len(ids)
        assert await list_ids(talk.client, agent_id=talk.agent_id, **params) == ids
    assert (await get_conversation(talk, preview))["source"] == "preview"
    assert preview not in await list_unread(talk.client)
    answer = await talk.client.get(f"{talk.path}/conversations", params={"source": "nowhere"})
    refused(answer, 422, "validation_error")


async def test_previews_count_with_their_tokens_alone(talk: Talker, services: Services) -> None:
    talk.script(Reply(usage=(40, 8)), Reply(usage=(40, 8)))
    await talk.say("Hi")
    await _preview(talk)
    for rolled in (False, True):
        await execute(
            services, "UPDATE usage SET rolled = $2 WHERE agent_id = $1", talk.agent_id, rolled
        )
        stats = await get_stats(talk, "24h" if rolled else "all_time")
        if not rolled:
            assert (stats["total_conversations"], stats["total_messages"]) == (1, 2)
            assert stats["total_tokens_used"] == 96
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 1
    report = (await talk.client.get("/api/v1/usage", params={"agent_id": talk.agent_id})).json()
    assert report["totals"]["conversations"] <= 1


async def test_a_preview_emits_no_events_and_is_not_in_the_log(talk: Talker) -> None:
    conversation_id, message_id = _ids(await _preview(talk))
    path = f"/api/v1/conversations/{conversation_id}"
    assert (await talk.client.post(f"{path}/end")).json()["status"] == "ended"
    talk.script(Reply(status=400))
    assert (await _post(talk)).status_code == 400
    for kind in ("started", "message", "failed", "completed"):
        assert await list_event_data(talk, f"agent.chat.{kind}") == []
    assert await list_log_entries(talk) == []
    answer = await talk.client.post(f"{path}/messages/{message_id}/feedback", {"rating": "up"})
    refused(answer, 409, "message_not_ratable")


async def test_a_draft_is_validated_as_a_change_of_the_agent_is(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for field, value in (
        ("system_prompt", " "),
        ("system_prompt", "x" * 100_001),
        ("temperature", 1.5),
        ("max_tokens", 0),
        ("name", "two\nlines"),
        ("primary_model", "nobody/knows-it"),
        ("status", "unknown"),
        ("unknown", 1),
    ):
        with subtests.test(f"{field} {str(value)[:20]}"):
            error = refused(await _post(talk, draft={field: value}), 422, "validation_error")
            assert [*error["details"]] == [f"draft.{field}"]
    assert talk.asked == []


async def test_a_preview_needs_a_message_or_an_answer_to_ask_again(talk: Talker) -> None:
    answer = await talk.client.post(f"{talk.path}/preview", {"draft": {}})
    refused(answer, 422, "validation_error")
    reply = await talk.say("Hi")
    body = {"conversation_id": reply["conversation_id"]}
    refused(await _replay(talk, reply["message"]["id"], **body), 422, "validation_error")


async def test_colleagues_without_agents_write_cannot_preview(
    talk: Talker, world: World, models: ModelServer
) -> None:
    user = await world.user("agent_user", talk.client.tenant_id)
    refused(await _post(talk, user), 403, "forbidden")
    stranger = await talker(world, models)
    refused(await _post(talk, stranger.client), 404, "agent_not_found")
    assert talk.asked == []


# Replays


async def test_a_replay_asks_a_question_again_with_its_history(talk: Talker) -> None:
    talk.script(Reply(texts=["1"]), Reply(texts=["2"]), Reply(texts=["3"]), Reply(texts=["4"]))
    first = await talk.say("One")
    conversation_id = first["conversation_id"]
    second = await talk.say("Two", conversation_id=conversation_id)
    await talk.say("Three", conversation_id=conversation_id)
    before = await list_messages(talk, conversation_id)
    answer = await _replay(talk, second["message"]["id"], draft={"system_prompt": "Other"})
    events = events_in(answer.text)
    assert texts_of(events) == "4"
    messages = talk.asked[-1]["messages"]
    assert [item["content"] for item in messages] == ["Other", "One", "1", "Two"]
    assert await list_messages(talk, conversation_id) == before
    copy = await list_messages(talk, _ids(events)[0])
    assert [item["content"] for item in copy] == ["One", "1", "Two", "4"]
    assert {item["id"] for item in copy}.isdisjoint(item["id"] for item in before)
    assert (await get_conversation(talk, _ids(events)[0]))["message_count"] == 4
    await _preview(talk, message="Five", conversation_id=_ids(events)[0])
    said = [item["content"] for item in talk.asked[-1]["messages"][1:]]
    assert said == ["One", "1", "Two", "4", "Five"]


async def test_a_replay_may_ask_another_question(talk: Talker) -> None:
    first = await talk.say("One")
    second = await talk.say("Two", conversation_id=first["conversation_id"])
    answer = await _replay(talk, second["message"]["id"], message="Instead?")
    assert answer.status_code == 200, answer.text
    said = [item["content"] for item in talk.asked[-1]["messages"][1:]]
    assert said == ["One", "Hello there", "Instead?"]


async def test_a_replay_has_the_files_of_the_question(talk: Talker) -> None:
    files = {"file": ("note.txt", b"The word is xylophone.")}
    attached = (await talk.client.post(f"{talk.path}/attachments", files=files)).json()
    reply = await talk.say("Which word?", attachments=[attached["id"]])
    answer = await _replay(talk, reply["message"]["id"])
    preview, _ = _ids(events_in(answer.text))
    assert "xylophone" in talk.asked[-1]["messages"][-1]["content"]
    # The file still belongs to the original.
    assert (await talk.client.delete(f"/api/v1/conversations/{preview}")).status_code == 204
    await talk.say("Again?", conversation_id=reply["conversation_id"])
    assert "xylophone" in str(talk.asked[-1]["messages"])


async def test_deleting_a_replay_leaves_the_calls_of_the_original(
    delegating_agent: Talker, services: Services
) -> None:
    talk = delegating_agent
    first = await talk.say("Hello")
    second = await talk.say("More", conversation_id=first["conversation_id"])
    answer = await _replay(talk, second["message"]["id"])
    preview, _ = _ids(events_in(answer.text))
    copied = (await list_messages(talk, preview))[1]["tool_calls"]
    original = (await list_messages(talk, first["conversation_id"]))[1]["tool_calls"]
    assert [call["output"] for call in copied] == [call["output"] for call in original] != []
    assert {call["id"] for call in copied}.isdisjoint(call["id"] for call in original)
    rows = await fetch_rows(
        services,
        "SELECT created_at, content FROM conversation_entries WHERE conversation_id = $1"
        " AND type = 'tool_call' UNION SELECT created_at, content FROM conversation_entries"
        " WHERE conversation_id = $2 AND type = 'tool_call'",
        preview,
        first["conversation_id"],
    )
    # As old as the original, so that both are kept for the same time.
    assert len({row["created_at"] for row in rows}) == 1


async def test_only_answers_that_the_caller_may_read_can_be_replayed(
    talk: Talker, world: World, models: ModelServer, services: Services
) -> None:
    reply = await talk.say("Secret")
    stranger = await talker(world, models)
    another = await talk.agent()
    question = (await list_messages(talk, reply["conversation_id"]))[0]["id"]
    message_id = reply["message"]["id"]
    for agent, answer_id in (
        (stranger, message_id),
        (another, message_id),
        (talk, question),
        (talk, "msg_unknown"),
    ):
        answer = await _replay(agent, answer_id)
        refused(answer, 404, "message_not_found")
    count = "SELECT count(*) FROM conversations WHERE agent_id = $1 AND source = 'preview'"
    assert await fetch_value(services, count, talk.agent_id) == 0


async def test_answers_to_others_can_be_replayed_with_conversations_read_alone(
    talk: Talker, world: World, super_admin: Client, restored_grants: None
) -> None:
    reply = await talk.say("Secret")
    await set_permissions(super_admin, "viewer", "agents:read", "agents:write")
    writer = await world.user("viewer", talk.client.tenant_id)
    body = {"replay_of": reply["message"]["id"]}
    refused(await writer.post(f"{talk.path}/preview", body), 404, "message_not_found")
    own = events_in((await _post(talk, writer)).text)
    body = {"replay_of": _ids(own)[1]}
    assert (await writer.post(f"{talk.path}/preview", body)).status_code == 200
    body = {"replay_of": reply["message"]["id"]}
    await set_permissions(super_admin, "viewer", "agents:write", "conversations:read")
    assert (await writer.post(f"{talk.path}/preview", body)).status_code == 200
