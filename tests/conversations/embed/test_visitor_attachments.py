"""POST /api/v1/public/agents/:id/attachments, and messages of visitors with attachments."""

from typing import Any

import pytest

from app.services import Services
from tests.conversations.chat.attachment_helpers import asked_texts, attach
from tests.conversations.embed.sites import ORIGIN, error_of
from tests.conversations.embed.visits import Visit, change_key, create_shop, visit, visit_as
from tests.model_server import ModelServer
from tests.platform.storage.counting import set_file_bytes
from tests.scripted_agents import Talker, talker
from tests.world import World


async def _attach(visitor: Visit) -> str:
    answer = await visitor.call("POST attachments")
    assert answer.status_code == 201, answer.text
    attachment_id: str = answer.json()["id"]
    return attachment_id


async def _list_attachments(visitor: Visit) -> list[list[dict[str, Any]]]:
    return [message["attachments"] for message in (await visitor.load())["messages"]]


async def test_an_agent_answers_a_visitor_from_a_file(talk: Talker) -> None:
    visitor = await visit(await create_shop(talk, "shop.example.com", allow_attachments=True))
    assert (await visitor.load())["agent"]["allow_attachments"] is True
    answer = await visitor.call("POST attachments")
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    attachment = answer.json()
    sent = await visitor.ask("What is the code?", attachments=[attachment["id"]])
    assert sent.status_code == 200, sent.text
    [question] = asked_texts(talk)
    assert "note.txt\nThe code is 4711.\n===" in question
    assert question.endswith("\n\nWhat is the code?")
    shown = {name: attachment[name] for name in ("id", "name", "size_bytes")}
    assert await _list_attachments(visitor) == [[shown], []]
    [message, _] = (await visitor.load())["messages"]
    assert message["content"] == "What is the code?"


async def test_attachments_of_others_are_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    site = await create_shop(talk, allow_attachments=True)
    other_key = await create_shop(talk, allow_attachments=True)
    visitor, stranger = await visit(site), await visit(site)
    same_id = await visit(other_key, session_id=visitor.session_id)
    wrong = {
        "of another visitor": await _attach(stranger),
        "of a customer": await _attach(await visit_as(site)),
        "under another key": await _attach(same_id),
        "of a user": (await attach(talk))["id"],
    }
    for reason, attachment_id in wrong.items():
        with subtests.test(reason):
            answer = await visitor.ask("Hi", attachments=[attachment_id])
            assert error_of(answer) == (422, "validation_error")
            assert list(answer.json()["error"]["details"]) == ["attachments.0"]
    # A user cannot send a visitor's, either.
    body = {"message": "Hi", "attachments": [wrong["of another visitor"]]}
    assert (await talk.client.post(f"{talk.path}/chat", body)).status_code == 422
    assert talk.asked == []
    assert (await visitor.load())["messages"] == []


async def test_only_keys_that_allow_it_take_files(talk: Talker) -> None:
    site = await create_shop(talk)
    visitor = await visit(site)
    refusal = (403, "attachments_not_allowed")
    assert error_of(await visitor.call("POST attachments")) == refusal
    await change_key(site, allow_attachments=True)
    attachment_id = await _attach(visitor)
    await change_key(site, allow_attachments=False)
    assert error_of(await visitor.ask("Hi", attachments=[attachment_id])) == refusal
    assert (await visitor.ask("Hi")).status_code == 200


async def test_visitors_of_a_full_tenant_attach_nothing(
    world: World, models: ModelServer, services: Services
) -> None:
    limits = {"requests_per_minute": 1_000_000, "storage_mb": 1}
    owner = await world.user("tenant_admin", await world.tenant("enterprise", limits))
    talk = await talker(world, models, client=owner)
    visitor = await visit(await create_shop(talk, allow_attachments=True))
    await set_file_bytes(services, owner.tenant_id, 1024 * 1024)
    answer = await visitor.call("POST attachments")
    assert error_of(answer) == (413, "quota_exceeded")
    assert "Tell the owner" in answer.json()["error"]["message"]


async def test_browsers_may_ask_before_they_attach(talk: Talker) -> None:
    site = await create_shop(talk, "shop.example.com", allow_attachments=True)
    headers = {"origin": ORIGIN, "access-control-request-method": "POST"}
    answer = await talk.world.anonymous().http.options(f"{site.path}/attachments", headers=headers)
    assert answer.status_code == 204, answer.text
    assert answer.headers["access-control-allow-origin"] == ORIGIN
