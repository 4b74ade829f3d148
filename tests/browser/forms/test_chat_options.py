"""Options in the chat: all of them can be read and chosen."""

from typing import Any

from playwright.async_api import expect

from tests.browser.axe import find_violations
from tests.browser.forms.chat_page import Chat
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.forms.api import create_form
from tests.world import Client

_SETTINGS = {"conversation": {"model": "none", "greeting": "Hello!"}}
_LONG = (
    "An option of many words, which say what a visitor gets, and when, and why, and for whom, " * 2
)
_OPTIONS = [
    *({"value": f"v{number}", "label": f"Option {number}"} for number in range(40)),
    {"value": "long", "label": _LONG.strip()},
    {"value": "wide", "label": "Donaudampfschifffahrtsgesellschaft" * 5},
]
_IS_CLIPPED = """(element) => {
    const inner = element.getBoundingClientRect();
    const outer = element.closest(".replies").getBoundingClientRect();
    return element.scrollWidth > element.clientWidth || inner.left < outer.left ||
        inner.right > outer.right || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}"""


async def _open(form_page: FormPage, developer: Client, kind: str) -> tuple[Chat, dict[str, Any]]:
    field = {"id": "a", "type": kind, "label": "Pick", "options": _OPTIONS, "required": True}
    form = await create_form(developer, field, settings=_SETTINGS)
    await form_page.open(form, "?mode=chat")
    chat = Chat(form_page.page)
    await chat.expect_question("Pick")
    return chat, form


async def test_many_and_long_options_are_buttons_that_can_be_reached(
    form_page: FormPage, developer: Client
) -> None:
    page = form_page.page
    await page.set_viewport_size({"width": 360, "height": 640})
    chat, form = await _open(form_page, developer, "radio")
    await expect(page.locator(".chip")).to_have_count(12)
    await take(page, "chat-many-options")
    await chat.press("Show 31 more")
    chips = page.locator(".chip")
    await expect(chips).to_have_count(len(_OPTIONS))
    await expect(chips.nth(11)).to_be_focused()
    for chip in (chips.first, chips.nth(40), chips.last):
        await chip.scroll_into_view_if_needed()
        assert await chip.evaluate(_IS_CLIPPED) is False
    await take(page, "chat-long-options")
    assert await find_violations(page) == []
    await chat.press(_LONG.strip())
    await chat.expect_end()
    assert (await read_submission(developer, form))["data"] == {"a": "long"}


async def test_the_button_stays_in_sight_of_a_long_list(
    form_page: FormPage, developer: Client
) -> None:
    page = form_page.page
    await page.set_viewport_size({"width": 360, "height": 640})
    chat, form = await _open(form_page, developer, "checkbox_group")
    send = page.get_by_role("button", name="Send this answer")
    await expect(send).to_be_in_viewport()
    await page.locator(".choice").last.click()
    await page.locator(".choice").first.click()
    await expect(send).to_be_in_viewport()
    await take(page, "chat-many-boxes")
    await chat.press("Send this answer")
    await chat.expect_end()
    assert (await read_submission(developer, form))["data"] == {"a": ["v0", "wide"]}
