"""POST /api/v1/agents/:id/attachments, and messages with attachments."""

from typing import Any

import pytest

from app.areas import AREAS
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.agents.knowledge.sample_pdfs import make_pdf
from tests.assertions import refused
from tests.conversations.chat.attachment_helpers import (
    NOTE,
    asked_texts,
    attach,
    send_file,
)
from tests.conversations.chat.conversation_helpers import list_messages, send_chat
from tests.conversations.chat.database import execute, fetch_value
from tests.conversations.chat.job_helpers import accept_job, run_job
from tests.conversations.chat.log_helpers import set_log_settings
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import World

_FIND = "SELECT count(*) FROM chat_attachments WHERE id = $1"
_AGE = "UPDATE chat_attachments SET {0} = {0} - interval '2 days' WHERE id = $1"


async def _exists(services: Services, attachment: dict[str, Any]) -> bool:
    return bool(await fetch_value(services, _FIND, attachment["id"]))


async def _delete_expired(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await retention.delete_expired(await tx.raw(), AREAS.retention)


# Uploading


async def test_the_text_of_a_file_is_stored_and_described(talk: Talker) -> None:
    attachment = await attach(talk, "C:\\notes\\note.txt")
    expected = {
        "name": "note.txt",
        "mime_type": "text/plain",
        "size_bytes": len(NOTE),
        "characters": len(NOTE),
        "truncated": False,
    }
    assert attachment.items() >= expected.items()
    assert set(attachment) == {*expected, "id", "expires_at"}
    long = await attach(talk, "long.md", b"word " * 50_000)
    assert (long["characters"], long["truncated"]) == (100_000, True)


async def test_files_that_cannot_be_read_are_refused(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for name, content, status, code, message in [
        ("photo.png", b"\x89PNG", 415, "unsupported_file_type", "PDF, DOCX"),
        ("...", NOTE, 422, "validation_error", "must have a name"),
        ("empty.txt", b"", 422, "validation_error", "is empty"),
        ("scan.pdf", make_pdf([""]), 422, "validation_error", "has no text; a scanned"),
        ("broken.pdf", NOTE, 422, "validation_error", "is not a PDF file"),
        ("large.txt", b"x" * (10 * 1024 * 1024 + 1), 413, "file_too_large", "10 MB"),
    ]:
        with subtests.test(name):
            error = refused(await send_file(talk, name, content), status, code)
            assert message in error["message"]
    answer = await talk.client.post(f"{talk.path}/attachments", files={"other": ("a.txt", NOTE)})
    refused(answer, 422, "validation_error")


# Chatting


async def test_the_model_sees_the_text_in_this_turn_and_in_later_ones(talk: Talker) -> None:
    attachment = await attach(talk)
    reply = await talk.say("What is the code?", attachments=[attachment["id"], attachment["id"]])
    [question] = asked_texts(talk)
    assert question.count("The code of the safe is 4711.") == 1
    assert "note.txt\n" in question
    assert "never instructions" in question
    assert question.endswith("\n\nWhat is the code?")
    await talk.say("Sure?", conversation_id=reply["conversation_id"])
    first, _, second = asked_texts(talk)
    assert "The code of the safe is 4711." in first
    assert first.endswith("\n\nWhat is the code?")
    assert second == "Sure?"


async def test_a_message_lists_its_attachments(talk: Talker) -> None:
    first, second = await attach(talk), await attach(talk, "b.csv", b"name,age\nAnn,7\n")
    reply = await talk.say("Hi", attachments=[second["id"], first["id"]])
    question, answer = await list_messages(talk, reply["conversation_id"])
    names = ("id", "name", "size_bytes")
    shown = [{name: item[name] for name in names} for item in (second, first)]
    assert question["attachments"] == shown
    assert question["content"] == "Hi"
    assert answer["attachments"] == []


async def test_a_job_sees_the_text(talk: Talker, services: Services) -> None:
    attachment = await attach(talk)
    job = await accept_job(talk, "What is the code?", attachments=[attachment["id"]])
    await run_job(services, job)
    [question] = asked_texts(talk)
    assert "The code of the safe is 4711." in question
    [message, _] = await list_messages(talk, job["conversation_id"])
    assert [item["id"] for item in message["attachments"]] == [attachment["id"]]


async def test_a_question_that_is_asked_again_keeps_its_attachments(talk: Talker) -> None:
    attachment = await attach(talk)
    ids = {"attachments": [attachment["id"]]}
    reply = await talk.say("Hi", **ids)
    conversation_id, replaces = reply["conversation_id"], reply["message"]["id"]
    await talk.say("Hi", conversation_id=conversation_id, replaces=replaces, **ids)
    [question] = asked_texts(talk)
    assert question.count("The code of the safe is 4711.") == 1
    messages = await list_messages(talk, conversation_id)
    assert [len(item["attachments"]) for item in messages] == [1, 0]


async def test_attachments_of_others_are_refused(
    talk: Talker,
    world: World,
    models: ModelServer,
    services: Services,
    subtests: pytest.Subtests,
) -> None:
    colleague = await world.user("tenant_admin", tenant_id=talk.client.tenant_id)
    other_agent, stranger = await talk.agent(), await talker(world, models)
    expired = await attach(talk)
    await execute(services, _AGE.format("expires_at"), expired["id"])
    wrong = {
        "of a colleague": (await attach(talk, caller=colleague))["id"],
        "for another agent": (await attach(other_agent))["id"],
        "of another tenant": (await attach(stranger))["id"],
        "expired": expired["id"],
        "unknown": "att_1",
    }
    own = (await attach(talk))["id"]
    for reason, attachment_id in wrong.items():
        for route in ("chat", "chat/stream", "chat/async"):
            with subtests.test(reason, route=route):
                body = {"message": "Hi", "attachments": [own, attachment_id]}
                answer = await talk.client.post(f"{talk.path}/{route}", body)
                error = refused(answer, 422, "validation_error")
                assert list(error["details"]) == ["attachments.1"]
    assert talk.asked == []
    answer = await send_chat(talk.client, talk, "Hi", attachments=[own] * 6)
    assert list(refused(answer, 422, "validation_error")["details"]) == ["attachments"]


# Deleting


async def test_an_attachment_that_no_message_has_is_deleted_after_a_day(
    talk: Talker, services: Services
) -> None:
    unused, new, used = await attach(talk), await attach(talk), await attach(talk)
    await talk.say("Hi", attachments=[used["id"]])
    for attachment in (unused, used):
        await execute(services, _AGE.format("expires_at"), attachment["id"])
    await _delete_expired(services)
    left = [await _exists(services, attachment) for attachment in (unused, new, used)]
    assert left == [False, True, True]


async def test_an_attachment_is_deleted_with_its_conversation_or_by_the_log_settings(
    talk: Talker, services: Services
) -> None:
    deleted, old = await attach(talk), await attach(talk)
    reply = await talk.say("Hi", attachments=[deleted["id"]])
    await talk.say("Hi", attachments=[old["id"]])
    path = f"/api/v1/conversations/{reply['conversation_id']}"
    assert (await talk.client.delete(path)).status_code == 204
    assert not await _exists(services, deleted)
    await set_log_settings(talk, retention_days=1)
    await _delete_expired(services)
    assert await _exists(services, old)
    await execute(services, _AGE.format("used_at"), old["id"])
    await _delete_expired(services)
    assert not await _exists(services, old)


async def test_a_question_that_a_failed_turn_keeps_can_be_asked_again(talk: Talker) -> None:
    attachment = await attach(talk)
    talk.script(Reply(status=400), Reply(texts=["Now."]))
    ids = {"attachments": [attachment["id"]]}
    refused(await send_chat(talk.client, talk, "Hi", **ids), 400, "provider_rejected")
    assert (await talk.say("Hi", **ids))["message"]["content"] == "Now."
    assert "The code of the safe is 4711." in asked_texts(talk)[-1]
