"""The demo shop, used in a browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import msgspec
import pytest
from playwright.async_api import FrameLocator, Page, expect

from app.demo import service
from app.demo import shop as demo_shop
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

    def find_form(self, page: Page) -> FrameLocator:
        return page.frame_locator("#contact iframe")


@asynccontextmanager
async def _serve(stores: Stores) -> AsyncIterator[Shop]:
    settings = msgspec.structs.replace(await stores.create_database(), demo=True)
    instance, server = Instance(settings), Server(settings)
    try:
        server.wait()
        yield Shop(instance, server)
    finally:
        server.close()
        await instance.services.close()


@pytest.fixture
async def shop(stores: Stores) -> AsyncIterator[Shop]:
    async with _serve(stores) as shop:
        yield shop


@pytest.fixture(scope="module")
async def prepared_shop(stores: Stores) -> AsyncIterator[Shop]:
    async with _serve(stores) as shop:
        await shop.instance.prepare()
        await service.ensure(shop.instance.services)
        yield shop


async def test_the_page_appears_by_itself(shop: Shop, page: Page) -> None:
    await page.goto(shop.url)
    await expect(page.get_by_text("Parley is preparing the demo")).to_be_visible()
    assert await axe.find_violations(page) == []
    await screenshots.take(page, "demo-waiting")
    await shop.instance.prepare()
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Stoneware for slow mornings", timeout=30_000
    )


async def test_the_page_is_accessible_in_every_theme_and_width(
    prepared_shop: Shop, page: Page
) -> None:
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for width in (1280, 360):
            await page.set_viewport_size({"width": width, "height": 800})
            await page.goto(prepared_shop.url)
            await expect(page.locator("#open-now")).to_be_visible()
            await page.locator("#contact").scroll_into_view_if_needed()
            await expect(prepared_shop.find_form(page).get_by_role("button").first).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await axe.find_violations(page) == []
            await screenshots.take(page, f"demo-{scheme}-{width}")


async def test_a_visitor_sends_the_form_and_opens_the_chat(prepared_shop: Shop, page: Page) -> None:
    console: list[str] = []
    requested: list[str] = []
    page.on("console", lambda line: console.append(f"{line.type}: {line.text}"))
    page.on("request", lambda request: requested.append(request.url))
    await page.goto(prepared_shop.url)
    form = prepared_shop.find_form(page)
    await form.get_by_label("Your name").fill("Ada")
    await form.get_by_label("Your e-mail address").fill("ada@example.com")
    await form.get_by_label("What is it about?").select_option("A return")
    await form.get_by_label("Order number").fill("42")
    await form.get_by_label("Your message").fill("A mug does not fit my hand.")
    await form.get_by_role("button", name="Send the message").click()
    await expect(form.get_by_text("Thank you! We will write back")).to_be_visible()

    await page.locator("parley-chat button.launcher").click()
    await expect(page.get_by_text(demo_shop.GREETING, exact=True)).to_be_visible()
    for question in demo_shop.SUGGESTIONS:
        await expect(page.get_by_role("button", name=question)).to_be_visible()
    await screenshots.take(page, "demo-chat")
    assert console == []
    assert {f"{url.scheme}://{url.netloc}" for url in map(urlsplit, requested)} == {
        prepared_shop.origin
    }
