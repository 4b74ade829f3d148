"""The sources of replies."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from litestar import Litestar
from playwright.async_api import Locator, Route, expect

from app.domain.sources import SourceView
from tests.agents.knowledge.librarian import HANDBOOK, librarian_of
from tests.browser import looks
from tests.browser.widget.shop import Shop
from tests.lengths import IS_LONG
from tests.model_server import Reply
from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import WorkerProcess

_PASSAGE = "The shop opens at nine in the morning."
_PLACE = {"page": 3, "heading": "Opening hours", "number": 1}
_ADDRESS = "https://shop.example.com/hours"
_WEB = {"url": _ADDRESS, "number": 2}
_SOURCES = [
    SourceView("handbook.md", _PASSAGE, 0.9, _PLACE),
    SourceView("Our hours", "Open from nine.", 0.8, _WEB),
    *(SourceView(f"list-{row}.csv", f"Row {row}", 0.5, {"row": row}) for row in range(4)),
]
_ANSWER = "We open at nine [1], see [2]. Both [1, 2]. Not [9], and not `[1]`."


@pytest.fixture
async def reader(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    async with run_worker(stores.settings, "ingest", "default") as process:
        yield process


async def _add_sources(route: Route) -> None:
    """Adds sources to each reply that the server sends without one."""
    answer = await route.fetch()
    sources = msgspec.json.encode(_SOURCES).decode()
    text = (await answer.text()).replace('"sources":[]', f'"sources":{sources}')
    await route.fulfill(response=answer, body=text)


async def _open_source(shop: Shop, name: str) -> Locator:
    """Opens a source with one click; returns the passage."""
    source = shop.replies.last.get_by_role("button", name=name)
    passage = shop.replies.last.locator(".passage")
    await expect(source).to_have_attribute("aria-expanded", "false")
    await expect(passage).to_be_hidden()
    await source.click()
    await expect(source).to_have_attribute("aria-expanded", "true")
    return passage


async def test_a_source_opens_on_one_click(shop: Shop) -> None:
    await shop.page.route("**/api/v1/public/agents/**", _add_sources)
    shop.talk.script(Reply(texts=[_ANSWER]))
    await shop.open_chat()
    await shop.ask("When does the shop open in the morning?", "We open at nine")
    for moment in ("after the stream", "after a reload"):
        passage = await _open_source(shop, "handbook.md")
        await expect(passage).to_contain_text(_PASSAGE)
        await expect(passage).to_contain_text("Page 3")
        await expect(passage).to_contain_text("Opening hours")
        if IS_LONG or moment == "after a reload":
            assert await looks.find_problems(shop.page, "widget-sources", 1280, 360) == []
        await shop.page.reload()
    page = shop.replies.last.get_by_role("link", name="Our hours")
    await expect(page).to_have_attribute("href", _ADDRESS)
    await expect(page).to_have_attribute("target", "_blank")
    await expect(page).to_have_attribute("rel", "noopener noreferrer nofollow")
    await expect(shop.replies.last.get_by_text("list-3.csv")).to_be_hidden()
    await shop.button("2 more").click()
    passage = await _open_source(shop, "list-3.csv")
    await expect(passage).to_contain_text("Row 3")


async def test_a_number_in_an_answer_opens_its_source(shop: Shop) -> None:
    await shop.page.route("**/api/v1/public/agents/**", _add_sources)
    shop.talk.script(Reply(texts=[_ANSWER]))
    await shop.open_chat()
    await shop.ask("When?", "We open at nine")
    numbers = shop.replies.last.locator(".citation")
    await expect(numbers).to_have_text(["1", "2", "1", "2"])
    await expect(shop.replies.last.locator("code")).to_have_text("[1]")
    await expect(shop.replies.last.locator(".body")).to_contain_text("Not [9]")
    await shop.button("Source 1").first.press("Enter")
    await expect(shop.replies.last.locator(".passage")).to_contain_text(_PASSAGE)
    await shop.button("Source 1").first.click()
    await expect(shop.replies.last.locator(".passage")).to_be_visible()
    await shop.page.context.route("https://shop.example.com/**", lambda route: route.abort())
    async with shop.page.expect_popup() as popup:
        await shop.button("Source 2").first.click()
    await (await popup.value).close()


@pytest.mark.long
@pytest.mark.usefixtures("reader")
async def test_passages_of_documents_are_shown_as_citations(shop: Shop) -> None:
    await librarian_of(shop.talk).add(handbook_md=HANDBOOK)
    shop.talk.script(Reply(texts=["We open at nine."]))
    await shop.open_chat()
    await shop.ask("When does the shop open in the morning?", "We open at nine.")
    passage = await _open_source(shop, "handbook.md")
    await expect(passage).to_contain_text("nine in the morning")
