"""Turns of a form's conversation as server-sent events."""

from typing import Any

import pytest

from app.domain.forms.conversation import conversations
from tests.assertions import refused
from tests.forms.api import EMAIL, TEXT, create_form, get_submission
from tests.forms.conversation.chat import MAIL, Chat, start
from tests.scripted_agents import events_in, names_of, texts_of
from tests.world import Client

NAMES = ["message_start", "content_delta", "form_progress", "message_stop"]


async def _stream(chat: Chat, content: str) -> list[tuple[str, Any]]:
    answer = await chat.client.post(f"{chat.path}/messages/stream", {"content": content})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return events_in(answer.text)


async def test_a_turn_is_streamed_and_stored(developer: Client, anonymous: Client) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    events = await _stream(chat, "Ada")
    assert names_of(events) == NAMES
    assert len([name for name, _ in events if name == "content_delta"]) > 3
    stored = (await chat.list_messages())[-1]
    assert texts_of(events) == stored["content"]
    assert events[0][1] == {"conversation_id": chat.id, "message_id": stored["id"]}
    assert dict(events)["form_progress"] == {
        "fields_completed": 1,
        "fields_total": 2,
        "form_completed": False,
        "submission_id": None,
        "field_id": "email",
    }
    assert events[-1][1] == {"message_id": stored["id"]}


async def test_the_last_turn_names_the_submission(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    chat = await start(anonymous, form)
    events = await _stream(chat, f"Ada, {MAIL}")
    assert names_of(events) == NAMES
    progress = dict(events)["form_progress"]
    assert (progress["form_completed"], progress["field_id"]) == (True, None)
    stored = await get_submission(developer, form, progress["submission_id"])
    assert stored["data"] == {"name": "Ada", "email": MAIL}


async def test_deltas_join_to_a_text_with_white_space_of_its_author(
    developer: Client, anonymous: Client
) -> None:
    settings = {"success_message": "\n Thank  you.\n\nGoodbye \n"}
    chat = await start(anonymous, await create_form(developer, TEXT, settings=settings))
    events = await _stream(chat, "Ada")
    assert texts_of(events) == (await chat.list_messages())[-1]["content"]


async def test_a_message_that_is_refused_is_not_streamed(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT))
    path = f"{chat.path}/messages/stream"
    assert (await anonymous.post(path, {"content": " "})).status_code == 422
    assert (await anonymous.post(path, {"content": "x" * 4001})).status_code == 422
    await chat.say("Ada")
    refused(await anonymous.post(path, {"content": "Bob"}), 409, "invalid_state")


async def test_a_conflict_is_the_only_event(
    developer: Client, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    take = conversations.take

    async def take_second(turn: conversations.Turn) -> Any:
        monkeypatch.setattr(conversations, "take", take)
        await chat.say("Bob")
        return await take(turn)

    monkeypatch.setattr(conversations, "take", take_second)
    ((name, data),) = await _stream(chat, "Ada")
    assert name == "error"
    assert data["code"] == "message_conflict"
    assert (await chat.get())["collected_data"] == {"name": "Bob"}


async def test_a_failure_is_an_event_without_its_details(
    developer: Client, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))

    async def fail(_: conversations.Turn) -> None:
        raise RuntimeError("secret of the machine")

    monkeypatch.setattr(conversations, "take", fail)
    ((name, data),) = await _stream(chat, "Ada")
    assert (name, data["code"]) == ("error", "internal_error")
    assert "secret" not in str(data)
    monkeypatch.undo()
    assert (await chat.say("Ada"))["fields_completed"] == 1
