"""The widget by keyboard, on phones, in the dark, and from right to left."""

from playwright.async_api import expect

from app.web import assets
from tests.browser import screenshots
from tests.browser.axe import CONTRAST, find_violations
from tests.browser.widget.shop import Shop
from tests.model_server import Reply

LAUNCHER_BYTES = 5_000
PANEL_BYTES = 25_000
_PANEL_ENTRY = "widget/panel.js"
_DARK = "rgb(24, 24, 27)"


async def test_everything_can_be_done_with_the_keyboard(shop: Shop) -> None:
    shop.talk.script(Reply(texts=["See [this](https://example.com/).\n\n```\ncode\n```"]))
    await shop.open_page()
    await shop.page.locator("#host").focus()
    keyboard = shop.page.keyboard
    await keyboard.press("Tab")
    await expect(shop.launcher).to_be_focused()
    await keyboard.press("Enter")
    await expect(shop.input).to_be_focused()
    await keyboard.type("Hello")
    await keyboard.press("Shift+Enter")
    await keyboard.type("you")
    await keyboard.press("Enter")
    await expect(shop.questions).to_have_text("Hello\nyou")
    await expect(shop.replies.last).to_contain_text("code")
    await expect(shop.button("Send")).to_be_visible()
    focused = "document.querySelector('parley-chat').shadowRoot.activeElement?.outerHTML ?? ''"
    seen = []
    for _ in range(20):
        await keyboard.press("Tab")
        seen.append(await shop.page.evaluate(focused))
    # The focus goes round within the panel.
    assert all(seen)
    assert len(set(seen)) < len(seen)
    assert any('href="https://example.com/"' in item for item in seen)
    await keyboard.press("Escape")
    await expect(shop.panel).to_be_hidden()
    await expect(shop.launcher).to_be_focused()


async def test_a_phone_shows_the_panel_on_the_whole_screen(shop: Shop) -> None:
    await shop.page.set_viewport_size({"width": 360, "height": 640})
    await shop.open_chat(greeting="Hello! How can I help?", suggestions="Opening hours|Returns")
    box = await shop.panel.bounding_box()
    assert box == {"x": 0, "y": 0, "width": 360, "height": 640}
    await shop.ask("Hi", "Hello there")
    assert await shop.page.evaluate("document.documentElement.scrollWidth") <= 360
    await screenshots.take(shop.page, "widget-phone")
    assert await find_violations(shop.page) == []
    await shop.button("Close chat").click()
    await expect(shop.launcher).to_be_focused()


async def test_a_dark_panel_is_readable(shop: Shop) -> None:
    await shop.page.emulate_media(color_scheme="dark")
    await shop.open_chat(color="#fde047")
    await shop.ask("Hi", "Hello there")
    await expect(shop.panel).to_have_css("background-color", _DARK)
    await screenshots.take(shop.page, "widget-dark-by-system")
    assert await find_violations(shop.page, *CONTRAST) == []
    # The site may choose the theme, whatever the visitor prefers.
    await shop.page.emulate_media(color_scheme="light")
    await expect(shop.panel).not_to_have_css("background-color", _DARK)
    await shop.open_page(theme="dark", color="#fde047")
    await expect(shop.panel).to_have_css("background-color", _DARK)
    await screenshots.take(shop.page, "widget-dark-by-attribute")


async def test_the_widget_is_mirrored_on_a_page_from_right_to_left(shop: Shop) -> None:
    shop.talk.script(Reply(texts=["נפתח ב-9 בבוקר.\n\n- יום ראשון\n- יום שני"]))
    await shop.open_chat(direction="rtl", title="חנות", launcher_text="שאלות?")
    await shop.ask("מתי נפתח?", "יום שני")
    launcher, panel = await shop.launcher.bounding_box(), await shop.panel.bounding_box()
    assert launcher
    assert panel
    assert launcher["x"] < 100
    assert panel["x"] < 100
    question, reply = await shop.questions.bounding_box(), await shop.replies.bounding_box()
    assert question
    assert reply
    assert question["x"] < reply["x"]
    await screenshots.take(shop.page, "widget-rtl")
    assert await find_violations(shop.page) == []


async def test_the_page_controls_the_widget_and_its_texts(shop: Shop) -> None:
    await shop.open_page(text_send="Absenden", placeholder="Ihre Frage…", lang="de", title="Laden")
    await shop.page.evaluate("Parley.open()")
    question = shop.page.get_by_label("Ihre Nachricht")
    await expect(question).to_be_focused()
    await expect(shop.button("Absenden")).to_be_visible()
    await expect(question).to_have_attribute("placeholder", "Ihre Frage…")
    await expect(shop.panel).to_have_attribute("lang", "de")
    await expect(shop.panel).to_have_accessible_name("Laden")
    await shop.page.evaluate("Parley.close()")
    await expect(shop.panel).to_be_hidden()
    await shop.page.evaluate("Parley.destroy()")
    await expect(shop.page.locator("parley-chat")).to_have_count(0)
    assert await shop.page.evaluate("'Parley' in window") is False


def test_the_launcher_and_the_panel_are_small() -> None:
    launcher = assets.load("widget/launcher.js", "/embed")
    assert len(launcher.gzipped) <= LAUNCHER_BYTES
    loaded = [_PANEL_ENTRY, *assets.list_imports(_PANEL_ENTRY)]
    assert "widget/panel.css" in loaded
    total = sum(len(assets.load(path).gzipped) for path in loaded)
    assert len(launcher.gzipped) + total <= PANEL_BYTES
