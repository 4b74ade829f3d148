"""Readers and documents: no way of chatting answers anybody from a document not meant for them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest
from litestar import Litestar

from app.domain.conversations.speech import engines
from app.domain.conversations.speech.speech_jobs import Transcript
from tests.agents.knowledge.audiences import (
    INSIDE,
    QUESTION,
    VISITORS,
    add_documents,
    hours_in,
)
from tests.agents.knowledge.librarian import Librarian, librarian_of
from tests.conversations.embed.sites import Site
from tests.conversations.embed.visits import Visit, create_shop, visit, visit_as
from tests.conversations.speech.recordings import tone
from tests.model_server import Reply
from tests.running_worker import run_worker
from tests.scripted_agents import Talker
from tests.stores import Stores
from tests.world import Client
from workers.main import WorkerProcess

Ask = Callable[[], Awaitable[httpx.Response]]


@pytest.fixture(scope="module")
async def worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    async with run_worker(stores.settings, "ingest", "default", "chat", "speech") as process:
        yield process


@pytest.fixture
async def shop(talk: Talker, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site whose agent has the documents, and understands every recording as the question."""

    async def transcribe(*_: Any) -> Transcript:
        return Transcript(QUESTION)

    monkeypatch.setattr(engines, "_transcribe", transcribe)
    await add_documents(librarian_of(talk))
    return await create_shop(talk, allow_voice=True)


async def _answered(talk: Talker, ask: Ask) -> set[str]:
    """Returns the documents that the model has read for the answer; the caller gets the same."""
    before = len(talk.asked)
    answer = await ask()
    assert answer.status_code in {200, 201}, answer.text
    (request,) = talk.asked[before:]
    quoted = hours_in(str(request["messages"]))
    assert hours_in(answer.text) <= quoted
    return quoted


def _body(visitor: Visit, **fields: Any) -> dict[str, Any]:
    return {"session_id": visitor.session_id, **fields}


def _list_visitor_ways(visitor: Visit) -> dict[str, Ask]:
    site = visitor.site
    http, path = site.talk.world.anonymous().http, site.path
    headers = {"authorization": f"Bearer {visitor.token}", "origin": visitor.origin or ""}
    message = _body(visitor, message=QUESTION)
    return {
        "chat": lambda: http.post(f"{path}/chat", json=message, headers=headers),
        "stream": lambda: http.post(f"{path}/chat/stream", json=message, headers=headers),
        "voice": lambda: http.post(
            f"{path}/chat/audio",
            files={"audio": ("recording.webm", tone())},
            data=_body(visitor),
            headers=headers,
            timeout=60,
        ),
    }


def _list_key_ways(site: Site) -> dict[str, Ask]:
    """With the key itself, which names no customer."""
    caller, headers, agent = site.talk.world.anonymous(), site.headers(), site.talk.agent_id
    return {
        "chat": lambda: caller.post(f"{site.path}/chat", site.body(QUESTION), headers=headers),
        **_list_openai_ways(caller, agent, headers),
    }


def _list_openai_ways(caller: Client, agent_id: str, headers: dict[str, str]) -> dict[str, Ask]:
    asked = {"model": agent_id, "messages": [{"role": "user", "content": QUESTION}]}
    response = {"model": agent_id, "input": QUESTION}
    ways = {
        "completion": ("chat/completions", asked),
        "streamed completion": ("chat/completions", {**asked, "stream": True}),
        "response": ("responses", response),
        "streamed response": ("responses", {**response, "stream": True}),
    }
    return {
        name: partial(caller.post, f"/v1/{path}", body, headers=headers)
        for name, (path, body) in ways.items()
    }


def _list_inside_ways(talk: Talker) -> dict[str, Ask]:
    client, path = talk.client, talk.path
    message = {"message": QUESTION}

    async def ask_async() -> httpx.Response:
        job = (await client.post(f"{path}/chat/async", message)).json()
        return await client.get(f"{path}/chat/jobs/{job['job_id']}", params={"wait": 30})

    return {
        "chat": lambda: client.post(f"{path}/chat", message),
        "stream": lambda: client.post(f"{path}/chat/stream", message),
        "async": ask_async,
        "voice": lambda: client.http.post(
            f"{path}/chat/audio", files={"audio": ("recording.webm", tone())}, timeout=60
        ),
        **_list_openai_ways(client, talk.agent_id, {}),
    }


async def test_visitors_are_answered_from_documents_for_them(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for groups, expected in VISITORS.items():
        visitor = await visit_as(shop, f"customer-{groups}", groups=list(groups))
        for way, ask in _list_visitor_ways(visitor).items():
            with subtests.test(groups=groups, way=way):
                assert await _answered(shop.talk, ask) == expected


async def test_visitors_without_a_name_are_answered_from_documents_for_everybody(
    shop: Site, subtests: pytest.Subtests
) -> None:
    ways = {**_list_visitor_ways(await visit(shop)), **_list_key_ways(shop)}
    for way, ask in ways.items():
        with subtests.test(way=way):
            assert await _answered(shop.talk, ask) == VISITORS[()]


async def test_everybody_inside_is_answered_from_all_valid_documents(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for way, ask in _list_inside_ways(shop.talk).items():
        with subtests.test(way=way):
            assert await _answered(shop.talk, ask) == INSIDE


async def test_sub_agents_answer_a_visitor_from_documents_for_them(
    talk: Talker, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    helper = await talk.with_helper()
    await add_documents(Librarian(talk.client, helper.agent_id))
    site = await create_shop(talk)
    call = Reply(calls=[("delegate_to_helper", {"task": QUESTION})])
    for groups, expected in VISITORS.items():
        with subtests.test(groups=groups):
            talk.script(call, Reply(texts=["At some hour."]))
            helper.script(Reply(texts=["At some hour."]))
            visitor = await visit_as(site, f"customer-{groups}", groups=list(groups))
            reply = await visitor.say("Ask the helper")
            assert hours_in(str(helper.asked[-1]["messages"])) == expected
            assert hours_in(str(reply["sources"])) == expected


async def test_groups_follow_the_latest_user_token(shop: Site) -> None:
    """They stay while a session is renewed without one."""
    gold = await visit_as(shop, groups=["gold"])
    renewed = Visit(shop, (await gold.renew()).json()["token"], gold.session_id, gold.origin)
    assert await _answered(shop.talk, _list_visitor_ways(renewed)["chat"]) == VISITORS["gold",]
    left = await visit_as(shop)
    assert left.session_id == gold.session_id
    # Also of the conversation so far, the model reads no passage again.
    assert await _answered(shop.talk, _list_visitor_ways(left)["chat"]) == VISITORS[()]
