"""The form in other widths, colours and directions, and with the keyboard alone."""

from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import expect

from tests.browser.axe import CONTRAST, find_violations
from tests.browser.forms.every_field import FIELDS
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.forms.api import create_form
from tests.matrix.routes import FILE
from tests.peer import answering
from tests.world import Client

_WIDTH = "document.documentElement.scrollWidth"
_LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
_HEBREW: list[dict[str, Any]] = [
    {"id": "name", "type": "text", "label": "השם שלך", "required": True, "help_text": "שם מלא"},
    {
        "id": "how",
        "type": "radio",
        "label": "איך שמעת עלינו?",
        "options": [{"value": "a", "label": "חברים"}, {"value": "b", "label": "Internet"}],
    },
    {"id": "stars", "type": "rating", "label": "דירוג"},
    {"id": "topic", "type": "select", "label": "נושא", "options": [{"value": "a", "label": "א"}]},
    {"id": "file", "type": "file", "label": "קובץ"},
]


async def test_a_phone_shows_everything_without_scrolling_sideways(
    form_page: FormPage, developer: Client
) -> None:
    long = {"id": "long", "type": "radio", "label": _LONG, "help_text": _LONG}
    options = {"options": [{"value": "a", "label": _LONG}]}
    form = await create_form(developer, *FIELDS, {**long, **options}, name=_LONG[:100])
    await form_page.page.set_viewport_size({"width": 360, "height": 640})
    await form_page.open(form)
    await form_page.page.locator(".picker > summary").click()
    await form_page.submit()
    await expect(form_page.summary).to_be_visible()
    assert await form_page.page.evaluate(_WIDTH) == 360
    await expect(form_page.page.locator(".trap")).not_to_be_in_viewport()
    await take(form_page.page, "form-360")
    await form_page.open(form, "?mode=chat")
    await expect(form_page.page.locator(".bubble")).to_be_visible()
    assert await form_page.page.evaluate(_WIDTH) == 360
    await take(form_page.page, "chat-360")


async def test_a_dark_page_is_readable(form_page: FormPage, developer: Client) -> None:
    form = await create_form(developer, *FIELDS, branding={"primary_color": "#1e3a8a"})
    await form_page.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await form_page.open(form)
    await form_page.page.get_by_role("radio", name="Sales").check()
    await form_page.submit()
    await expect(form_page.summary).to_be_visible()
    assert await find_violations(form_page.page, *CONTRAST) == []
    await take(form_page.page, "form-dark")


# The others look like a field for text.
_LOOKS = [field for field in FIELDS if field["type"] not in {"email", "phone", "url", "number"}]


async def test_colours_of_the_author_stay_readable(form_page: FormPage, developer: Client) -> None:
    for name, branding in (
        ("yellow", {"primary_color": "#ffe600", "background_color": "#fff8dc"}),
        ("night", {"primary_color": "#101040", "background_color": "#0b1020"}),
    ):
        form = await create_form(developer, *_LOOKS, branding=branding)
        await form_page.open(form)
        await form_page.page.get_by_role("radio", name="Sales").check()
        await form_page.submit()
        await expect(form_page.summary).to_be_visible()
        assert await find_violations(form_page.page, *CONTRAST) == []
        await take(form_page.page, f"form-{name}")


async def test_a_logo_is_shown_if_it_can_be_loaded(form_page: FormPage, developer: Client) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path != "/logo.png":
            raise web.HTTPNotFound
        return web.Response(body=FILE, content_type="image/png")

    logo, logs = form_page.page.locator(".logo"), list[str]()
    form_page.page.on("console", lambda line: logs.append(line.text))
    async with answering(answer) as url:
        form = await create_form(developer, branding={"logo_url": f"{url}/logo.png"})
        await form_page.open(form)
        await expect(logo).to_have_js_property("naturalWidth", 1)
        # The policy allows it.
        assert logs == []
        form = await create_form(developer, branding={"logo_url": f"{url}/missing.png"})
        await form_page.open(form)
        await expect(logo).to_have_count(0)


async def test_a_form_that_is_written_from_right_to_left(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, *_HEBREW, name="צור קשר", description="נשמח לעזור")
    await form_page.open(form)
    await expect(form_page.page.locator("main")).to_have_attribute("dir", "rtl")
    label = await form_page.page.get_by_text("השם שלך").bounding_box()
    field = await form_page.field("השם שלך").bounding_box()
    assert label
    assert field
    # The label ends where the input ends, at the right.
    assert abs((label["x"] + label["width"]) - (field["x"] + field["width"])) < 2
    await form_page.submit()
    assert await find_violations(form_page.page) == []
    await take(form_page.page, "form-rtl")
    # Words of the other direction do not turn it round.
    await expect(form_page.page.get_by_text("Internet")).to_have_css("direction", "ltr")


# What is typed into a field, and the keys that are pressed in it.
_KEYS = {
    "name": ("Ada", ""),
    "email": ("ada@example.com", ""),
    "phone": ("12345 678", ""),
    "site": ("https://example.com", ""),
    "message": ("Hello you", ""),
    "guests": ("4", ""),
    "topic": ("", "ArrowDown"),
    # The list opens, and closes again.
    "interests": ("", "Enter Tab Tab Space Tab Space Escape"),
    "how": ("", "Space ArrowDown"),
    "news": ("", "Space Tab Space"),
    "day": ("03042026", ""),
    "stars": ("", "Space ArrowRight ArrowRight"),
    "level": ("", "ArrowRight"),
    "signature": ("Ada", ""),
    "terms": ("", "Space Tab Enter"),
}
_FOCUSED = "document.activeElement.closest('.field')?.querySelector('.problem').id"


async def _reach(form_page: FormPage, field_id: str) -> None:
    """Presses Tab until the focus is in a field."""
    for _ in range(10):
        await form_page.page.keyboard.press("Tab")
        if await form_page.page.evaluate(_FOCUSED) == f"problem-{field_id}":
            return
    pytest.fail(f"Tab does not lead to {field_id}")


async def test_a_form_is_filled_in_with_the_keyboard_alone(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, *FIELDS)
    await form_page.open(form)
    for field_id, (text, keys) in _KEYS.items():
        await _reach(form_page, field_id)
        await form_page.page.keyboard.type(text)
        for key in keys.split():
            await form_page.page.keyboard.press(key)
    await form_page.expect_success()
    await expect(form_page.page.locator(".outcome")).to_be_focused()
    submission = await read_submission(developer, form)
    data = submission["data"]
    assert [data.pop("signature")] == [file["file_id"] for file in submission["files"]]
    assert data == {
        "name": "Ada",
        "email": "ada@example.com",
        "phone": "12345 678",
        "site": "https://example.com",
        "message": "Hello you",
        "guests": 4,
        "topic": "sales",
        "interests": ["i1", "i2"],
        "how": "help",
        "news": ["sales", "help"],
        "day": "2026-03-04",
        "stars": 3,
        "level": 5.5,
        "terms": True,
    }
