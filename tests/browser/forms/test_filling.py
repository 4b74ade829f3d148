"""Forms that visitors fill in and send."""

import asyncio
from typing import Any

from playwright.async_api import Route, expect

from app.domain.forms.definition.fields.registry import FIELD_TYPES
from tests.browser.axe import find_violations
from tests.browser.forms.every_field import ANSWERS, FIELDS, fill_in
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.data.tables.api import add_rows, create_table
from tests.forms.api import EMAIL, TEXT, TOPIC, create_form, list_submissions
from tests.forms.contents import PDF
from tests.world import Client


async def test_every_type_of_field_is_filled_in_saved_as_a_draft_and_stored(
    form_page: FormPage, developer: Client
) -> None:
    assert {field["type"] for field in FIELDS} == FIELD_TYPES.keys()
    form = await create_form(developer, *FIELDS, name="Plan your visit", description="Ask away.")
    await form_page.set_time_zone("Europe/Paris")
    await form_page.open(form, "?campaign=spring&terms=true")
    await expect(form_page.field("I agree to the terms")).not_to_be_checked()
    await take(form_page.page, "form")
    await fill_in(form_page)
    await expect(form_page.page.get_by_role("button", name="Remove plan.pdf")).to_be_visible()
    await take(form_page.page, "form-filled-in")
    assert await find_violations(form_page.page) == []
    assert len(form_page.list_requests("GET", f"/{form['slug']}")) == 1
    link = await _save_draft(form_page)
    await _continue(form_page, form, link)
    await expect(form_page.page.get_by_text("Your saved answers are back.")).to_be_visible()
    await form_page.field("Your name").fill("Ada Lovelace")
    await form_page.submit()
    await form_page.expect_success()
    await take(form_page.page, "form-sent")
    submission = await read_submission(developer, form)
    _check_answers(submission)
    assert submission["metadata"]["page_url"].startswith(f"{form_page.url}/f/{form['slug']}")
    assert form_page.external_urls == []
    await _continue(form_page, form, link)
    await expect(form_page.page.get_by_role("alert")).to_contain_text("This draft does not exist")


async def _save_draft(form_page: FormPage) -> str:
    """Saves the answers without the name, and returns the link to them."""
    await form_page.field("Your name").fill("")
    await form_page.field("E-mail address").fill("not an address")
    save = form_page.page.get_by_role("button", name="Save and continue later")
    await save.click()
    # An answer may be missing in a draft, but not be wrong.
    await expect(form_page.summary).to_contain_text("“E-mail address” must be an e-mail address")
    await expect(form_page.message("name")).to_be_empty()
    await form_page.field("E-mail address").fill("ada@example.com")
    await save.click()
    link = await form_page.page.get_by_label("Link to your answers").input_value()
    await take(form_page.page, "form-draft")
    return link


async def _continue(form_page: FormPage, form: dict[str, Any], link: str) -> None:
    await form_page.page.goto("about:blank")
    await form_page.open(form, f"#{link.partition('#')[2]}")


def _check_answers(submission: dict[str, Any]) -> None:
    data = dict(submission["data"])
    files = {file["field_id"]: file for file in submission["files"]}
    assert {name: data.pop(name) for name in files} == {
        name: file["file_id"] for name, file in files.items()
    }
    document, signature = files["document"], files["signature"]
    assert (document["filename"], document["size_bytes"]) == ("plan.pdf", len(PDF))
    assert (signature["filename"], signature["mime_type"]) == ("signature.png", "image/png")
    assert data == ANSWERS
    assert (submission["metadata"]["source"], submission["flags"]) == ("public", [])


async def test_an_empty_form_sends_only_what_was_answered(
    form_page: FormPage, developer: Client
) -> None:
    fields = [{**field, "required": field["id"] == "name"} for field in FIELDS]
    form = await create_form(developer, *fields)
    await form_page.open(form)
    await form_page.field("Your name").fill("Ada")
    await form_page.submit()
    await form_page.expect_success()
    assert (await read_submission(developer, form))["data"] == {"name": "Ada", "terms": False}


async def test_fields_appear_while_their_condition_holds(
    form_page: FormPage, developer: Client
) -> None:
    budget = {
        "id": "budget",
        "type": "number",
        "label": "Your budget",
        "required": True,
        "conditional": {"field": "topic", "operator": "equals", "value": "sales"},
    }
    head = {
        "id": "head",
        "type": "section",
        "label": "A large budget",
        "conditional": {"field": "budget", "operator": "gt", "value": 1000},
    }
    form = await create_form(developer, head, TOPIC, budget)
    await form_page.open(form)
    section = form_page.page.get_by_role("heading", name="A large budget")
    await expect(form_page.field("Your budget")).to_be_hidden()
    await form_page.field("Topic").select_option("Sales")
    await form_page.field("Your budget").fill("5000")
    await expect(section).to_be_visible()
    # The section depends on the budget, which depends on the topic.
    await form_page.field("Topic").select_option("Help")
    await expect(section).to_be_hidden()
    await form_page.submit()
    await form_page.expect_success()
    assert (await read_submission(developer, form))["data"] == {"topic": "help"}


async def test_options_of_a_data_table_are_loaded_and_again_after_a_failure(
    form_page: FormPage, developer: Client
) -> None:
    columns = [{"name": "code", "type": "text"}, {"name": "city", "type": "text"}]
    table = await create_table(developer, columns)
    await add_rows(developer, table, {"code": "o", "city": "Oslo"}, {"code": "r", "city": "Rome"})
    source = {"table_id": table["id"], "value_column": "code", "label_column": "city"}
    form = await create_form(
        developer,
        {"id": "city", "type": "select", "label": "City", "data_source": source},
        {"id": "cities", "type": "checkbox_group", "label": "Cities", "data_source": source},
    )
    await form_page.lose("/fields/city/options", "request")
    await form_page.open(form)
    await form_page.page.get_by_role("button", name="Try again").click()
    await form_page.field("City").select_option("Rome")
    await form_page.page.get_by_label("Oslo").check()
    await form_page.submit()
    await form_page.expect_success()
    assert (await read_submission(developer, form))["data"] == {"city": "r", "cities": ["o"]}


async def test_fields_that_depend_on_a_given_answer_appear_with_its_options(
    form_page: FormPage, developer: Client
) -> None:
    table = await create_table(developer, [{"name": "city", "type": "text"}])
    await add_rows(developer, table, {"city": "Oslo"}, {"city": "Rome"})
    source = {"table_id": table["id"], "value_column": "city", "label_column": "city"}
    cases = [("radio", "equals"), ("checkbox_group", "contains")]
    for kind, operator in cases:
        form = await create_form(
            developer,
            {"id": "city", "type": kind, "label": "City", "data_source": source},
            {
                **TEXT,
                "conditional": {"field": "city", "operator": operator, "value": "Rome"},
            },
        )
        await form_page.open(form, "?city=Rome")
        await expect(form_page.page.get_by_label("Rome")).to_be_checked()
        await expect(form_page.field("Your name")).to_be_visible()


async def test_answers_are_stored_once_when_a_button_is_pressed_twice_and_the_connection_lost(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer)
    may_fail = asyncio.Event()

    async def wait(route: Route) -> None:
        await may_fail.wait()
        await route.abort()

    await form_page.page.route("**/submit", wait)
    await form_page.open(form)
    await form_page.field("Your name").fill("Ada")
    # A form that is being sent is not sent again.
    await form_page.submit_button.dblclick()
    await expect(form_page.submit_button).to_be_disabled()
    await form_page.field("Your name").press("Enter")
    may_fail.set()
    notice = form_page.page.get_by_role("alert")
    for number in (1, 2):
        await expect(notice).to_contain_text("The connection was lost. Your answers are still here")
        assert len(form_page.list_requests("POST", "/submit")) == number
        await take(form_page.page, "form-connection-lost")
        if number == 1:
            await form_page.page.unroute("**/submit")
            await form_page.lose("/submit", "answer")
        await notice.get_by_role("button", name="Try again").click()
    await form_page.expect_success()
    keys = [
        request.headers["idempotency-key"] for request in form_page.list_requests("POST", "/submit")
    ]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(await list_submissions(developer, form)) == 1


async def test_answers_begin_with_those_of_the_address_and_mark_a_program(
    form_page: FormPage, developer: Client
) -> None:
    number = {"id": "guests", "type": "number", "label": "Guests", "validation": {"max": 9}}
    form = await create_form(developer, TEXT, EMAIL, TOPIC, number)
    await form_page.open(form, "?name=Ada+L.&email=wrong&topic=help&guests=10&unknown=1")
    await expect(form_page.field("Your name")).to_have_value("Ada L.")
    await expect(form_page.field("Topic")).to_have_value("help")
    # Values that the fields do not take are left out.
    await expect(form_page.field("Your e-mail")).to_have_value("")
    await expect(form_page.field("Guests")).to_have_value("")
    # A program fills in everything.
    await form_page.page.locator(".trap input").evaluate("input => { input.value = 'http://spam' }")
    await form_page.submit()
    await form_page.expect_success()
    assert (await read_submission(developer, form))["flags"] == ["honeypot"]
