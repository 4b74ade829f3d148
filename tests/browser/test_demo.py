"""The demo shop, used in a browser."""

from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
from playwright.async_api import Page, expect

from tests.browser import axe, screenshots
from tests.demo.instance import Instance
from tests.server import Server
from tests.stores import Stores


class Shop:
    """A web process with the demo, and its database."""

    def __init__(self, instance: Instance, server: Server) -> None:
        self.instance = instance
        self.url = f"{server.url}/demo"
        self.origin = server.url


@pytest.fixture
async def shop(stores: Stores) -> AsyncIterator[Shop]:
    settings = msgspec.structs.replace(await stores.create_database(), demo=True)
    instance, server = Instance(settings), Server(settings)
    try:
        server.wait()
        yield Shop(instance, server)
    finally:
        server.close()
        await instance.services.close()


async def test_the_page_appears_by_itself_and_is_accessible_in_every_theme_and_width(
    shop: Shop, page: Page
) -> None:
    problems: list[str] = []
    requested: list[str] = []
    await page.goto(shop.url)
    await expect(page.get_by_text("Parley is preparing the demo")).to_be_visible()
    await screenshots.take(page, "demo-waiting")
    await shop.instance.prepare()
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Stoneware for slow mornings", timeout=30_000
    )
    page.on("console", lambda line: problems.append(f"{line.type}: {line.text}"))
    page.on("request", lambda request: requested.append(request.url))
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for width in (1280, 360):
            await page.set_viewport_size({"width": width, "height": 800})
            await page.goto(shop.url)
            await expect(page.locator("#open-now")).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await axe.find_violations(page) == []
            await screenshots.take(page, f"demo-{scheme}-{width}")
    assert problems == []
    assert {str(httpx.URL(url).copy_with(path="/")) for url in requested} == {f"{shop.origin}/"}
