"""The tenant whose share a lookup of a model's host counts in."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.kit import trace
from app.net.resolver import NameResolver
from app.services import Services
from tests.conversations.chat.conversation_helpers import create_visitor_headers, send_chat
from tests.conversations.chat.job_helpers import run_new_job
from tests.model_server import serving
from tests.scripted_agents import Talker, talker
from tests.world import World

Ask = Callable[[Talker, Services], Awaitable[object]]


async def _chat(talk: Talker, _services: Services) -> None:
    assert (await send_chat(talk.client, talk)).status_code == 200


async def _chat_from_a_site(talk: Talker, _services: Services) -> None:
    headers = await create_visitor_headers(talk)
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    body = {"session_id": "s", "message": "Hi"}
    answer = await talk.world.anonymous().post(path, body, headers=headers)
    assert answer.status_code == 200, answer.text


async def _run_job(talk: Talker, services: Services) -> None:
    assert (await run_new_job(talk, services))["status"] == "completed"


async def test_a_lookup_counts_in_the_share_of_the_agents_tenant(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[Ask] = [_chat, _chat_from_a_site, _run_job]
    for ask in cases:
        with subtests.test(ask=ask), pytest.MonkeyPatch.context() as monkeypatch:
            tenants, start = list[str](), NameResolver._start_lookup

            async def record(self: NameResolver, host: str) -> Any:
                tenants.append(trace.current_tenant())  # noqa: B023
                return await start(self, host)  # noqa: B023

            monkeypatch.setattr(NameResolver, "_start_lookup", record)
            async with serving() as models:
                models.url = models.url.replace("127.0.0.1", "localhost")
                talk = await talker(world, models)
                await ask(talk, services)
            assert tenants == [talk.client.tenant_id]
