"""A client that leaves ends its turn, in every way of chatting that waits for the whole answer, and
in streams of web sites and of OpenAI clients.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.assertions import until
from tests.conversations.chat.conversation_helpers import list_messages
from tests.conversations.chat.database import fetch_rows, fetch_value
from tests.conversations.chat.delegation_scripts import build_call
from tests.conversations.embed.factories import create_embed_key
from tests.http_clients import open_client
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.server import Server

DISCONNECT_SECONDS = 2.0
COMPLETIONS = "/v1/chat/completions"


class Request(msgspec.Struct):
    """A question to an agent, as a client sends it over a socket."""

    path: str
    body: dict[str, Any]
    token: str
    headers: dict[str, str] = {}

    async def send(self, server: Server) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}", **self.headers}
        async with open_client(base_url=server.url, timeout=30) as client:
            return await client.post(self.path, json=self.body, headers=headers)


def _list_requests(talk: Talker, key: str) -> dict[str, Request]:
    public = f"/api/v1/public/agents/{talk.agent_id}"
    visit = {"session_id": new_id("visit"), "message": "Hi"}
    completion = {"model": talk.agent_id, "messages": [{"role": "user", "content": "Hi"}]}
    streamed = {**completion, "stream": True}
    token = talk.client.token or ""
    keyed = {"idempotency-key": new_id("key")}
    return {
        "sync": Request(f"{talk.path}/chat", {"message": "Hi"}, token),
        "sync of a visitor": Request(f"{public}/chat", visit, key),
        "repeatable sync of a visitor": Request(f"{public}/chat", visit, key, keyed),
        "stream of a visitor": Request(f"{public}/chat/stream", visit, key),
        "completion": Request(COMPLETIONS, completion, token),
        "completion of a visitor": Request(COMPLETIONS, completion, key),
        "streamed completion": Request(COMPLETIONS, streamed, token),
        "streamed completion of a visitor": Request(COMPLETIONS, streamed, key),
    }


@asynccontextmanager
async def leave_during(talk: Talker, server: Server, request: Request) -> AsyncIterator[None]:
    """Sends a request, and leaves at the end of the block, while the model is writing."""
    asked = len(talk.asked)
    task = asyncio.create_task(request.send(server))
    try:
        await until(lambda: len(talk.asked) > asked or task.done())
        assert not task.done(), task.result().text
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_client_that_leaves_ends_the_call_of_the_model(
    talk: Talker, server: Server, services: Services, subtests: pytest.Subtests
) -> None:
    """In all ways at once: the web process looks for closed connections once a second."""
    hold, closed = asyncio.Event(), talk.models.closed_early
    ways: dict[str, tuple[Talker, Request]] = {}
    for name in _list_requests(talk, ""):
        agent = await talk.agent()
        agent.script(Reply(hold=hold))
        key = (await create_embed_key(agent.client, agent.agent_id))["api_key"]
        ways[name] = agent, _list_requests(agent, key)[name]
    try:
        async with AsyncExitStack() as stack:
            for agent, request in ways.values():
                await stack.enter_async_context(leave_during(agent, server, request))
        for name, (agent, _) in ways.items():
            with subtests.test(name):
                await _wait_for_end(services, agent)
        assert talk.models.closed_early == closed + len(ways)
    finally:
        hold.set()


async def _wait_for_end(services: Services, talk: Talker) -> None:
    """Waits until no conversation of the agent is being answered."""
    busy = "SELECT count(*) FROM conversations WHERE agent_id = $1 AND turn_until IS NOT NULL"
    async with asyncio.timeout(DISCONNECT_SECONDS):
        while await fetch_value(services, busy, talk.agent_id):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.01)


async def test_what_was_said_before_the_client_left_is_kept(
    talk: Talker, server: Server, services: Services
) -> None:
    """A whole answer arrives at once: only earlier rounds of the turn can be kept."""
    hold = asyncio.Event()
    talk.script(Reply(texts=["Let me see."], calls=[build_call("nobody")]), Reply(hold=hold))
    request = Request(f"{talk.path}/chat", {"message": "Hi"}, talk.client.token or "")
    try:
        async with leave_during(talk, server, request):
            await until(lambda: len(talk.asked) == 2)
        sql = "SELECT id FROM conversations WHERE agent_id = $1 AND message_count = 2"
        async with asyncio.timeout(5):
            while not (rows := await fetch_rows(services, sql, talk.agent_id)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        hold.set()
    question, answer = await list_messages(talk, rows[0]["id"])
    assert question["status"] == "complete"
    assert (answer["content"], answer["status"]) == ("Let me see.", "interrupted")


async def test_a_repeatable_request_of_a_user_goes_on_for_its_repetition(
    talk: Talker, server: Server
) -> None:
    hold, headers = asyncio.Event(), {"idempotency-key": new_id("key")}
    talk.script(Reply(texts=["Kept."], hold=hold))
    request = Request(f"{talk.path}/chat", {"message": "Hi"}, talk.client.token or "", headers)
    closed = talk.models.closed_early
    async with leave_during(talk, server, request):
        pass
    # The watch over connections has noticed by now that one of another request is closed.
    other = await talk.agent()
    stop = asyncio.Event()
    other.script(Reply(hold=stop))
    async with leave_during(
        other, server, Request(f"{other.path}/chat", {"message": "Hi"}, request.token)
    ):
        pass
    await until(lambda: talk.models.closed_early == closed + 1)
    stop.set()
    hold.set()
    answer = await request.send(server)
    assert answer.status_code == 200, answer.text
    assert answer.headers["idempotent-replayed"] == "true"
    assert answer.json()["message"]["content"] == "Kept."
    assert len(talk.asked) == 1
