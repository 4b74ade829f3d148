"""The demo shop, used in a browser."""

from collections.abc import AsyncIterator
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec
import pytest
from playwright.async_api import FrameLocator, Page, expect

from app.demo import shop as demo_shop
from tests.browser import axe, screenshots
from tests.demo.instance import Instance
from tests.lengths import IS_LONG
from tests.server import Server
from tests.stores import Stores

Scheme = Literal["light", "dark"]
# A theme, a width, and the rules that are applied; none are all.
Look = tuple[Scheme, int, tuple[str, ...]]
_FEW_LOOKS: Final[list[Look]] = [("light", 1280, ()), ("dark", 360, axe.CONTRAST)]
_ALL_LOOKS: Final[list[Look]] = [
    ("light", 1280, ()),
    ("light", 360, ()),
    ("dark", 1280, ()),
    ("dark", 360, ()),
]
_LOOKS = _ALL_LOOKS if IS_LONG else _FEW_LOOKS


class Shop:
    """A web process with the demo, and its database."""

    def __init__(self, instance: Instance, server: Server) -> None:
        self.instance = instance
        self.url = f"{server.url}/demo"
        self.origin = server.url

    def find_form(self, page: Page) -> FrameLocator:
        return page.frame_locator("#contact iframe")


class Visit:
    """The console lines and requests of a page since `start`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.console: list[str] = []
        self.requested_urls: list[str] = []
        page.on("console", lambda line: self.console.append(f"{line.type}: {line.text}"))
        page.on("request", lambda request: self.requested_urls.append(request.url))

    async def start(self, url: str) -> None:
        self.console.clear()
        self.requested_urls.clear()
        await self.page.goto(url)

    def list_origins(self) -> set[str]:
        return {f"{url.scheme}://{url.netloc}" for url in map(urlsplit, self.requested_urls)}


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


async def test_the_page_appears_by_itself_and_works(
    shop: Shop, page: Page, subtests: pytest.Subtests
) -> None:
    """One test, since a server with a database of its own takes longer than all visits."""
    await page.goto(shop.url)
    await expect(page.get_by_text("Parley is preparing the demo")).to_be_visible()
    assert await axe.find_violations(page) == []
    await screenshots.take(page, "demo-waiting")
    await shop.instance.prepare()
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "Stoneware for slow mornings", timeout=30_000
    )
    visit = Visit(page)
    for number, (scheme, width, rules) in enumerate(_LOOKS):
        with subtests.test(f"accessible in the {scheme}", width=width):
            await _show(page, scheme, width)
            if number:
                await visit.start(shop.url)
            await _look_at_all(shop, page, rules)
            await screenshots.take(page, f"demo-{scheme}-{width}")
    await _show(page, "light", 1280)
    with subtests.test("a visitor sends the form and opens the chat"):
        await _send_form_and_open_chat(shop, page)
    assert visit.console == []
    assert visit.list_origins() == {shop.origin}


async def _show(page: Page, scheme: Scheme, width: int) -> None:
    await page.emulate_media(color_scheme=scheme)
    await page.set_viewport_size({"width": width, "height": 800})


async def _look_at_all(shop: Shop, page: Page, rules: tuple[str, ...]) -> None:
    assert page.viewport_size
    await expect(page.locator("#open-now")).to_be_visible()
    await page.locator("#contact").scroll_into_view_if_needed()
    await expect(shop.find_form(page).get_by_role("button").first).to_be_visible()
    width = page.viewport_size["width"]
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await axe.find_violations(page, *rules) == []


async def _send_form_and_open_chat(shop: Shop, page: Page) -> None:
    form = shop.find_form(page)
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
