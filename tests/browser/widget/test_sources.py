"""The sources of replies."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from litestar import Litestar
from playwright.async_api import Route, expect

from app.domain.sources import SourceView
from tests.agents.knowledge.librarian import HANDBOOK, librarian_of
from tests.browser import screenshots
from tests.browser.axe import find_violations
from tests.browser.widget.shop import Shop
from tests.lengths import IS_LONG
from tests.model_server import Reply
from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import WorkerProcess

_SOURCE = msgspec.json.encode(
    SourceView("handbook.md", "The shop opens at nine in the morning.", 0.9)
).decode()


@pytest.fixture
async def reader(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    async with run_worker(stores.settings, "ingest", "default") as process:
        yield process


async def _add_source(route: Route) -> None:
    """Adds a source to each reply that the server sends without one."""
    answer = await route.fetch()
    text = (await answer.text()).replace('"sources":[]', f'"sources":[{_SOURCE}]')
    await route.fulfill(response=answer, body=text)


async def _expect_citations(shop: Shop) -> None:
    for moment in ("after the stream", "after a reload"):
        sources = shop.replies.last.locator(".sources")
        await sources.get_by_text("Sources").click()
        citation = sources.locator("li").first
        await expect(citation.locator("blockquote")).to_be_hidden()
        await citation.get_by_text("handbook.md").click()
        await expect(citation.locator("blockquote")).to_contain_text("nine in the morning")
        await screenshots.take(shop.page, "widget-sources")
        if IS_LONG or moment == "after a reload":
            assert await find_violations(shop.page) == []
        await shop.page.reload()


async def test_sources_are_shown_as_citations_that_open(shop: Shop) -> None:
    await shop.page.route("**/api/v1/public/agents/**", _add_source)
    shop.talk.script(Reply(texts=["We open at nine."]))
    await shop.open_chat()
    await shop.ask("When does the shop open in the morning?", "We open at nine.")
    await _expect_citations(shop)


@pytest.mark.long
@pytest.mark.usefixtures("reader")
async def test_passages_of_documents_are_shown_as_citations(shop: Shop) -> None:
    await librarian_of(shop.talk).add(handbook_md=HANDBOOK)
    shop.talk.script(Reply(texts=["We open at nine."]))
    await shop.open_chat()
    await shop.ask("When does the shop open in the morning?", "We open at nine.")
    await _expect_citations(shop)
