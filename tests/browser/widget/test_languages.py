"""The chat widget in other languages than English."""

from playwright.async_api import expect

from tests.browser import screenshots
from tests.browser.axe import CONTRAST, find_violations
from tests.browser.widget.shop import Shop

_STRICT = "default-src 'none'; script-src {0}; connect-src {0}; frame-src {0}"


def _list_tables(shop: Shop) -> set[str]:
    """Returns the names of the languages that were loaded."""
    paths = (url.rpartition("/languages/") for url in shop.requested_urls)
    return {name for _, folder, name in paths if folder}


async def test_the_widget_speaks_german_under_a_strict_policy(shop: Shop) -> None:
    lines: list[str] = []
    shop.page.on("console", lambda message: lines.append(message.text))
    shop.site.policy = _STRICT.format(shop.server.url)
    await shop.open_page(lang="de-CH", text_send="Absenden")
    await expect(shop.launcher).to_have_attribute("aria-label", "Chat öffnen")
    await shop.launcher.click()
    await expect(shop.launcher).to_have_attribute("aria-label", "Chat schließen")
    message = shop.page.get_by_label("Ihre Nachricht")
    await expect(message).to_have_attribute("placeholder", "Nachricht schreiben …")
    greeting = shop.page.locator("parley-chat .message.assistant").first
    await expect(greeting).to_contain_text("Guten Tag! Wie kann ich Ihnen helfen?")
    await message.fill("Hallo")
    await expect(shop.button("Absenden")).to_be_visible()
    await message.press("Enter")
    await expect(shop.page.locator(".message.assistant").last).to_contain_text("Hello there")
    assert _list_tables(shop) == {"de.js"}
    assert [line for line in lines if "favicon" not in line] == []
    assert await find_violations(shop.page, *CONTRAST) == []
    await screenshots.take(shop.page, "widget-de")


async def test_the_widget_speaks_arabic_from_right_to_left(shop: Shop) -> None:
    await shop.open_page(lang="ar")
    await shop.launcher.click()
    await expect(shop.page.locator("parley-chat")).to_have_attribute("dir", "rtl")
    message = shop.page.get_by_label("رسالتكم")
    await expect(message).to_be_focused()
    await message.fill("مرحبا")
    await message.press("Enter")
    await expect(shop.page.locator(".message.assistant").last).to_contain_text("Hello there")
    question = await shop.page.locator(".message.user .bubble, .message.user").first.bounding_box()
    panel = await shop.panel.bounding_box()
    assert question is not None
    assert panel is not None
    # What the visitor says stands at the end of the line, which is the left.
    assert question["x"] - panel["x"] < panel["width"] / 2
    assert await find_violations(shop.page, *CONTRAST) == []
    await screenshots.take(shop.page, "widget-ar")


async def test_the_frame_speaks_the_language_of_the_page(shop: Shop) -> None:
    shop.site.policy = _STRICT.format(shop.server.url)
    await shop.open_page(mode="frame", lang="ar")
    await shop.launcher.click()
    frame = shop.page.frame_locator("parley-chat iframe")
    await expect(frame.get_by_label("رسالتكم")).to_be_visible()
    await expect(frame.locator("parley-chat")).to_have_attribute("dir", "rtl")


async def test_an_unknown_language_is_english(shop: Shop) -> None:
    await shop.open_chat(lang="sv")
    await expect(shop.input).to_have_attribute("placeholder", "Write a message…")
    assert _list_tables(shop) == set()
