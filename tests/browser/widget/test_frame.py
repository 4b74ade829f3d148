"""The chat in a frame of our own origin."""

import asyncio

from playwright.async_api import FrameLocator, Route, expect

from tests.browser import screenshots
from tests.browser.widget.customers import sign
from tests.browser.widget.shop import Shop

_STRICT = "default-src 'none'; script-src {0}; connect-src {0}; frame-src {0}"


def _frame_of(shop: Shop) -> FrameLocator:
    return shop.page.frame_locator("parley-chat iframe")


async def test_the_same_panel_works_in_a_frame_that_the_page_cannot_read(shop: Shop) -> None:
    lines: list[str] = []
    shop.page.on("console", lambda message: lines.append(message.text))
    shop.site.policy = _STRICT.format(shop.server.url)
    await shop.open_page(mode="frame", greeting="Hello!", color="#b45309")
    await shop.launcher.click()
    frame = _frame_of(shop)
    await expect(frame.locator(".message.assistant")).to_contain_text("Hello!")
    await frame.get_by_label("Your message").fill("Hi")
    await frame.get_by_label("Your message").press("Enter")
    await expect(frame.locator(".message.assistant").last).to_contain_text("Hello there")
    await screenshots.take(shop.page, "widget-frame")
    assert [line for line in lines if "favicon" not in line] == []
    read = (
        "document.querySelector('parley-chat').shadowRoot.querySelector('iframe').contentDocument"
    )
    assert await shop.page.evaluate(read) is None
    assert (
        await shop.page.evaluate(
            "Object.keys(localStorage).filter((key) => key.endsWith('session'))"
        )
        == []
    )
    await frame.get_by_label("Your message").press("Escape")
    await expect(shop.launcher).to_be_focused()
    await expect(shop.launcher).to_have_attribute("aria-expanded", "false")
    await shop.page.reload()
    await shop.launcher.click()
    await expect(frame.locator(".message.assistant").last).to_contain_text("Hello there")


async def test_a_customer_who_signs_in_while_the_frame_is_loaded_is_known(shop: Shop) -> None:
    is_held, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        is_held.set()
        await released.wait()
        await route.continue_()

    # Only the panel in the frame needs it.
    await shop.page.route("**/shared/colors.js", hold)
    await shop.open_page(mode="frame", greeting="Hello {name}!", color="#b45309")
    await shop.launcher.click()
    await is_held.wait()
    token = sign(shop, sub="customer-7", name="Ada")
    await shop.page.evaluate("(token) => Parley.identify(token)", token)
    released.set()
    await expect(_frame_of(shop).locator(".message.assistant")).to_contain_text("Hello Ada!")


async def test_another_site_cannot_show_the_frame(shop: Shop) -> None:
    await shop.create_key(allowed_domains=["https://other.example.com"])
    lines: list[str] = []
    shop.page.on("console", lambda message: lines.append(message.text))
    await shop.open_page(mode="frame")
    await shop.launcher.click()
    await expect(shop.notice).to_have_text("This chat is not set up for this website.")
    await screenshots.take(shop.page, "widget-frame-refused")
    await expect(_frame_of(shop).get_by_label("Your message")).to_have_count(0)
    assert any("frame-ancestors" in line for line in lines)
    assert any("allowed_domains" in line for line in lines)
    await shop.button("Close chat").click()
    await expect(shop.panel).to_be_hidden()


async def test_the_frame_is_no_page_of_its_own(shop: Shop) -> None:
    await shop.create_key()
    key = shop.key["api_key"]
    answer = await shop.page.goto(f"{shop.server.url}/embed/frame?api_key={key}")
    assert answer is not None
    assert answer.status == 403
