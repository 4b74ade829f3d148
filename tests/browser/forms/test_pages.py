"""Forms of several pages."""

import re
from typing import Any

from playwright.async_api import Locator, Route, expect

from tests.browser.axe import CONTRAST, find_violations
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.forms.api import create_form, list_submissions
from tests.world import Client

_TOPIC = {
    "id": "topic",
    "type": "radio",
    "label": "Topic",
    "required": True,
    "options": [{"value": "sales", "label": "Sales"}, {"value": "help", "label": "Help"}],
}
_FIELDS: list[dict[str, Any]] = [
    {"id": "name", "type": "text", "label": "Name", "required": True},
    {"id": "nick", "type": "text", "label": "Nick"},
    {"id": "p2", "type": "page_break", "label": "Your topic", "help_text": "Choose one."},
    _TOPIC,
    {"id": "p3", "type": "page_break", "label": "Your budget"},
    {
        "id": "budget",
        "type": "number",
        "label": "Budget",
        "required": True,
        "conditional": {"field": "topic", "operator": "equals", "value": "sales"},
    },
    {"id": "p4", "type": "page_break", "label": "The last questions"},
    {"id": "note", "type": "textarea", "label": "Note"},
    {"id": "email", "type": "email", "label": "E-mail"},
]


class _Steps:
    def __init__(self, form_page: FormPage) -> None:
        self.form_page, self.page = form_page, form_page.page

    @property
    def heading(self) -> Locator:
        return self.page.locator(".steps h2")

    @property
    def back(self) -> Locator:
        return self.page.get_by_role("button", name="Back")

    async def expect(self, text: str, *, is_focused: bool = True) -> None:
        await expect(self.heading).to_have_text(re.compile(text))
        if is_focused:
            await expect(self.heading).to_be_focused()

    async def next(self) -> None:
        await self.page.get_by_role("button", name="Next").click()


async def _open(form_page: FormPage, developer: Client) -> tuple[_Steps, dict[str, Any]]:
    form = await create_form(developer, *_FIELDS)
    await form_page.open(form)
    return _Steps(form_page), form


async def test_pages_are_shown_one_after_the_other(form_page: FormPage, developer: Client) -> None:
    steps, form = await _open(form_page, developer)
    # The page of the budget is skipped until it is known that there is one.
    await steps.expect(r"^Step 1 of 3\s*$", is_focused=False)
    await expect(steps.back).to_be_hidden()
    await expect(form_page.field("Note")).to_be_hidden()
    assert await find_violations(form_page.page) == []
    await steps.next()
    await expect(form_page.summary).to_contain_text("There is 1 problem")
    await take(form_page.page, "pages-wrong")
    await form_page.field("Name").fill("Ada")
    await form_page.field("Name").press("Enter")
    await steps.expect("Step 2 of 3 Your topic")
    await expect(form_page.summary).to_have_count(0)
    await expect(form_page.page.get_by_text("Choose one.")).to_be_visible()
    await form_page.page.get_by_label("Sales").check()
    await steps.expect("Step 2 of 4", is_focused=False)
    await take(form_page.page, "pages")
    await steps.next()
    await steps.expect("Step 3 of 4 Your budget")
    await steps.back.click()
    await steps.expect("Step 2 of 4")
    await form_page.page.get_by_label("Help").check()
    await steps.next()
    await steps.expect("Step 3 of 3 The last questions")
    await expect(form_page.submit_button).to_have_text("Submit")
    assert await find_violations(form_page.page) == []
    await form_page.field("Note").fill("Hi")
    await form_page.submit()
    await form_page.expect_success()
    assert (await read_submission(developer, form))["data"] == {
        "name": "Ada", "topic": "help", "note": "Hi"
    }  # fmt: skip


async def test_the_browser_goes_back_and_forward_by_pages(
    form_page: FormPage, developer: Client
) -> None:
    steps, form = await _open(form_page, developer)
    await form_page.field("Name").fill("Ada")
    await steps.next()
    await form_page.page.get_by_label("Help").check()
    await steps.next()
    await steps.expect("Step 3 of 3")
    await form_page.page.go_back()
    await steps.expect("Step 2 of 3")
    await steps.back.click()
    await steps.expect("Step 1 of 3")
    await expect(form_page.field("Name")).to_have_value("Ada")
    await form_page.page.go_forward()
    await steps.expect("Step 2 of 3")
    await steps.next()
    await form_page.submit()
    await form_page.expect_success()
    assert len(await list_submissions(developer, form)) == 1


async def test_a_double_click_turns_one_page(form_page: FormPage, developer: Client) -> None:
    """The page that follows would be sent without an answer."""
    fields = [{"id": "a", "type": "text", "label": "A"}, _FIELDS[6], _FIELDS[7]]
    form = await create_form(developer, *fields)
    await form_page.open(form)
    await form_page.submit_button.dblclick()
    steps = _Steps(form_page)
    await steps.expect("Step 2 of 2", is_focused=False)
    assert await list_submissions(developer, form) == []


async def test_a_refusal_leads_to_the_page_of_the_first_wrong_answer(
    form_page: FormPage, developer: Client
) -> None:
    steps, _ = await _open(form_page, developer)

    async def refuse(route: Route) -> None:
        errors = [{"field": "email", "message": "is odd"}, {"field": "nick", "message": "is rude"}]
        body = {"code": "validation_error", "message": "wrong", "details": {"errors": errors}}
        await route.fulfill(status=400, json={"error": body})

    await form_page.page.route("**/submit", refuse)
    await form_page.field("Name").fill("Ada")
    await steps.next()
    await form_page.page.get_by_label("Help").check()
    await steps.next()
    await form_page.submit()
    await expect(form_page.summary).to_contain_text("There are 2 problems")
    await steps.expect("Step 1 of 3", is_focused=False)
    await expect(form_page.message("nick")).to_have_text("This is rude.")
    await form_page.summary.get_by_role("link", name="E-mail").click()
    await steps.expect("Step 3 of 3", is_focused=False)
    await expect(form_page.field("E-mail")).to_be_focused()
    await expect(form_page.submit_button).to_have_text("Submit")


async def test_a_draft_goes_on_where_it_was_saved(form_page: FormPage, developer: Client) -> None:
    steps, form = await _open(form_page, developer)
    await form_page.field("Name").fill("Ada")
    await steps.next()
    await form_page.page.get_by_label("Sales").check()
    await steps.next()
    await form_page.page.get_by_role("button", name="Save and continue later").click()
    link = await form_page.page.get_by_label("Link to your answers").input_value()
    fragment = link.partition("#")[2]
    # A link that names no page leads to the last answer.
    for rest, step in ((fragment, "Step 3 of 4"), (fragment.split("&")[0], "Step 2 of 4")):
        await form_page.page.goto("about:blank")
        await form_page.open(form, f"#{rest}")
        await steps.expect(step, is_focused=False)
    await steps.next()
    await form_page.page.go_back()
    await steps.expect("Step 2 of 4")


async def test_pages_on_a_dark_phone(form_page: FormPage, developer: Client) -> None:
    await form_page.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await form_page.page.set_viewport_size({"width": 360, "height": 640})
    steps, _ = await _open(form_page, developer)
    await form_page.field("Name").fill("Ada")
    await steps.next()
    assert await find_violations(form_page.page, *CONTRAST) == []
    assert await form_page.page.evaluate("document.documentElement.scrollWidth") == 360
    await take(form_page.page, "pages-phone-dark")
