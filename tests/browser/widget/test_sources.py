"""The sources of replies."""

from collections.abc import AsyncIterator

import pytest
from litestar import Litestar
from playwright.async_api import expect

from tests.browser import screenshots
from tests.browser.axe import find_violations
from tests.browser.widget.shop import Shop
from tests.knowledge.librarian import HANDBOOK, librarian_of
from tests.model_server import Reply
from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import WorkerProcess


@pytest.fixture
async def reader(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    async with run_worker(stores.settings, "ingest", "default") as process:
        yield process


@pytest.mark.usefixtures("reader")
async def test_sources_are_shown_as_citations_that_open(shop: Shop) -> None:
    await librarian_of(shop.talk).add(handbook_md=HANDBOOK)
    shop.talk.script(Reply(texts=["We open at nine."]))
    await shop.open_chat()
    await shop.ask("When does the shop open in the morning?", "We open at nine.")
    for _ in ("after the stream", "after a reload"):
        sources = shop.replies.last.locator(".sources")
        await sources.get_by_text("Sources").click()
        citation = sources.locator("li").first
        await expect(citation.locator("blockquote")).to_be_hidden()
        await citation.get_by_text("handbook.md").click()
        await expect(citation.locator("blockquote")).to_contain_text("nine in the morning")
        await screenshots.take(shop.page, "widget-sources")
        assert await find_violations(shop.page) == []
        await shop.page.reload()
