"""What visitors see while the local model is busy; the scripted server plays it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec
import pytest
from playwright.async_api import Page, expect

from app.domain.agents.llm.gateway import LOCAL_MODEL
from app.domain.agents.llm.local_queue import LocalQueue, Ticket
from app.domain.agents.llm.protocol import QueueLimits
from app.observe import heartbeat
from app.observe.heartbeat import Beat
from app.services import Services
from tests.agents.llm.local_model import announce_local_model
from tests.browser import screenshots
from tests.browser.widget.shop import HostSite, Shop
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker
from tests.server import Server
from tests.stores import Stores


@pytest.fixture
async def busy_shop(
    page: Page,
    host_site: HostSite,
    talk: Talker,
    models: ModelServer,
    services: Services,
    stores: Stores,
) -> AsyncIterator[Shop]:
    """A shop whose agent uses a local model with one slot."""
    models.script(LOCAL_MODEL, Reply(texts=["Hello there"]))
    agent = await talk.agent(primary_model=LOCAL_MODEL)
    server = Server(msgspec.structs.replace(stores.settings, local_model=True))
    try:
        server.wait()
        async with announce_local_model(services, models.url, slots=1):
            yield Shop(page, host_site, server, agent)
    finally:
        server.close()


def _create_ticket(services: Services, tenant_id: str) -> Ticket:
    server = Beat("model", heartbeat.own_name(), slots=1)
    return LocalQueue(services.redis).create_ticket(server, tenant_id, QueueLimits())


async def _wait(ticket: Ticket) -> None:
    async with aclosing(ticket.wait()) as positions:
        async for _ in positions:
            pass


async def test_a_visitor_sees_how_many_are_before_them(busy_shop: Shop, services: Services) -> None:
    holder, other = (_create_ticket(services, name) for name in ("ten_first", "ten_second"))
    await _wait(holder)
    waiting = asyncio.create_task(_wait(other))
    status = busy_shop.page.locator("parley-chat .typing")
    try:
        await busy_shop.open_chat()
        await busy_shop.send("Hi")
        await expect(status).to_have_text("Waiting for the model, 1 before you…")
        await screenshots.take(busy_shop.page, "widget-queued")
        holder.leave()
        await waiting
        await expect(status).to_have_text("Waiting for the model, you are next…")
    finally:
        waiting.cancel()
        holder.leave()
        other.leave()
    await expect(busy_shop.replies.last).to_contain_text("Hello there")
    await expect(status).to_have_count(0)
