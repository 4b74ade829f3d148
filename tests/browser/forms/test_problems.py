"""What a visitor sees when something is wrong with an answer, a file or the form."""

import asyncio
import re
from datetime import timedelta
from typing import Any

from playwright.async_api import Route, expect

from app.kit import clock
from app.services import Services
from tests.browser.axe import find_violations
from tests.browser.forms.every_field import ASKED
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.database import fetch_rows
from tests.forms.api import EMAIL, FILE, TEXT, create_form, update_form
from tests.forms.contents import ELF, PDF
from tests.world import Client

_REQUIRED = [dict(field, required=True) for field in ASKED]


# The first values of a progress bar that differ.
_COLLECT_SHARES = """bar => new Promise((resolve) => {
    const shares = [];
    new MutationObserver(() => {
        shares.push(bar.value);
        if (shares.length === 2) resolve(shares);
    }).observe(bar, { attributes: true });
})"""


# The field that has the focus after each link.
_FOLLOW_LINKS = """links => links.map((link) => {
    link.click();
    return document.activeElement.closest(".field")?.querySelector(".problem").id;
})"""


# Whether each field is marked as invalid, and described by what is wrong with it.
_READ_PROBLEMS = """fields => fields.map((field) => {
    const { id, textContent } = field.querySelector(".problem");
    const inputs = [field, ...field.querySelectorAll("*")];
    const described = inputs.filter((item) => item.matches(`[aria-describedby~=${id}]`));
    return {
        id,
        isInvalid: inputs.some((item) => item.matches("[aria-invalid]")),
        isDescribed: textContent !== "" && described.length > 0,
    };
})"""


def _describe(name: str, content: bytes) -> Any:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


async def test_all_problems_are_listed_and_each_leads_to_its_field(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, *_REQUIRED)
    await form_page.open(form)
    await form_page.submit()
    await expect(form_page.summary).to_be_focused()
    heading = f"There are {len(_REQUIRED)} problems"
    await expect(form_page.summary.get_by_role("heading")).to_have_text(heading)
    items = form_page.summary.get_by_role("listitem")
    assert [text.split("”")[0].strip("“") for text in await items.all_inner_texts()] == [
        field["label"] for field in _REQUIRED
    ]
    assert await find_violations(form_page.page) == []
    await take(form_page.page, "form-problems")
    expected = [f"problem-{field['id']}" for field in _REQUIRED]
    assert await form_page.summary.locator("a").evaluate_all(_FOLLOW_LINKS) == expected
    await form_page.summary.get_by_role("link").first.click()
    await expect(form_page.page.locator(f".field:has(#{expected[0]}) :focus")).to_have_count(1)
    described = await form_page.page.locator(".field:has(.problem)").evaluate_all(_READ_PROBLEMS)
    assert described == [
        {"id": f"problem-{field['id']}", "isInvalid": True, "isDescribed": True}
        for field in _REQUIRED
    ]
    name, message = form_page.field(_REQUIRED[0]["label"]), form_page.message(_REQUIRED[0]["id"])
    text = re.escape(await message.inner_text())
    await expect(name).to_have_accessible_description(re.compile(text))
    assert form_page.list_requests("POST", "/submit") == []


async def test_a_hint_appears_when_a_field_is_left_and_goes_when_it_is_right(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    await form_page.open(form)
    email, message = form_page.field("Your e-mail"), form_page.message("email")
    await form_page.field("Your name").press("Tab")
    # An empty field is no problem until the form is sent.
    await expect(form_page.message("name")).to_be_empty()
    await email.fill("ada")
    await expect(message).to_be_empty()
    await email.press("Tab")
    await expect(message).to_have_text("This must be an e-mail address, like name@example.com.")
    await expect(email).to_have_accessible_description(await message.inner_text())
    await email.fill("ada@example.com")
    await expect(message).to_be_empty()
    await expect(email).not_to_have_attribute("aria-invalid", "true")


async def test_what_only_the_server_refuses_is_shown_at_its_fields(
    form_page: FormPage, developer: Client
) -> None:
    # A browser cannot compile this pattern.
    code = {"id": "code", "type": "text", "label": "Code", "validation": {"pattern": "(?i)ab+"}}
    form = await create_form(developer, TEXT, code, {**code, "id": "other", "label": "Other"})
    await form_page.open(form)
    await form_page.field("Your name").fill("Ada")
    await form_page.field("Code").fill("<b>x</b>")
    await form_page.field("Other").fill("ABBB")
    await form_page.submit()
    await expect(form_page.summary).to_be_focused()
    await expect(form_page.summary).to_contain_text("“Code” must have the required format")
    await expect(form_page.message("code")).to_have_text("This must have the required format.")
    await expect(form_page.message("other")).to_be_empty()
    await form_page.field("Code").fill("abb")
    await form_page.submit()
    await form_page.expect_success()


async def test_a_form_that_was_closed_meanwhile_says_so_and_is_sent_as_it_was_shown(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer)
    await form_page.open(form)
    await form_page.field("Your name").fill("Ada")
    closes_at = (clock.now() - timedelta(seconds=1)).isoformat()
    await update_form(developer, form, settings={"closes_at": closes_at})
    await form_page.submit()
    notice = form_page.page.get_by_role("alert")
    await expect(notice).to_contain_text("The form Contact was closed at")
    await expect(notice.get_by_role("button")).to_have_count(0)
    await expect(form_page.field("Your name")).to_have_value("Ada")
    # It is opened again, with other fields.
    fields = [{**EMAIL, "required": True}]
    await update_form(developer, form, settings={"closes_at": None}, fields=fields)
    await form_page.submit()
    await form_page.expect_success()
    assert (await read_submission(developer, form))["version"] == 1


async def test_an_unknown_form_has_a_friendly_page(form_page: FormPage) -> None:
    answer = await form_page.page.goto(f"{form_page.url}/f/no-such-form")
    assert answer
    assert answer.status == 404
    heading = form_page.page.get_by_role("heading")
    await expect(heading).to_have_text("This form is not available")
    assert await find_violations(form_page.page) == []
    await take(form_page.page, "form-unknown")


# Files


async def test_an_upload_shows_its_progress_and_keeps_the_form_waiting(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, FILE)
    await form_page.open(form)
    await form_page.set_upload_speed(300_000)
    await form_page.field("A file").set_input_files(_describe("plan.pdf", PDF + bytes(500_000)))
    progress = form_page.page.get_by_role("progressbar", name="Upload of plan.pdf")
    shares = await progress.evaluate(_COLLECT_SHARES)
    await form_page.submit()
    await expect(form_page.message("file")).to_have_text("This is still being uploaded.")
    await take(form_page.page, "form-uploading")
    await expect(form_page.page.get_by_role("button", name="Remove plan.pdf")).to_be_visible()
    await expect(form_page.message("file")).to_be_empty()
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1
    await form_page.submit()
    await form_page.expect_success()
    (file,) = (await read_submission(developer, form))["files"]
    assert (file["filename"], file["size_bytes"]) == ("plan.pdf", len(PDF) + 500_000)


async def test_a_file_is_cancelled_removed_or_refused_and_can_be_left_out(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, {**FILE, "validation": {"max_size_mb": 0.5}})
    await form_page.open(form)
    page, field, message = form_page.page, form_page.field("A file"), form_page.message("file")
    await _cancel_and_remove(form_page)
    uploads = len(form_page.list_requests("POST", "/upload"))
    await field.set_input_files(_describe("large.pdf", PDF + bytes(600_000)))
    await expect(message).to_have_text("This must have at most 0.5 MB.")
    assert len(form_page.list_requests("POST", "/upload")) == uploads
    await page.get_by_role("button", name="Remove large.pdf").click()
    await field.set_input_files(_describe("program.pdf", ELF))
    await expect(message).to_contain_text("does not take files of the type application/x-elf")
    await form_page.submit()
    # It is not sent without the file that the visitor has chosen.
    await expect(form_page.summary).to_contain_text("“A file”")
    await page.get_by_role("button", name="Remove program.pdf").click()
    await expect(message).to_be_empty()
    await form_page.submit()
    await form_page.expect_success()
    assert (await read_submission(developer, form))["data"] == {}


async def _cancel_and_remove(form_page: FormPage) -> None:
    """Cancels an upload while it runs, and removes a file that is uploaded."""
    page, field = form_page.page, form_page.field("A file")
    never = asyncio.Event()

    async def wait(_route: Route) -> None:
        await never.wait()

    await page.route("**/upload", wait)
    await field.set_input_files(_describe("a.pdf", PDF))
    await page.get_by_role("button", name="Cancel a.pdf").click()
    await expect(field).to_be_focused()
    await page.unroute("**/upload")
    await field.set_input_files(_describe("b.pdf", PDF))
    await page.get_by_role("button", name="Remove b.pdf").click()
    await expect(page.get_by_text("b.pdf")).to_have_count(0)
    never.set()


async def test_a_file_that_did_not_arrive_is_tried_again_and_stored_once(
    form_page: FormPage, developer: Client, services: Services
) -> None:
    form = await create_form(developer, FILE)
    await form_page.open(form)
    page, field, message = form_page.page, form_page.field("A file"), form_page.message("file")
    retry = page.get_by_role("button", name="Try again")
    statuses = [413, 429, 500]

    async def refuse(route: Route) -> None:
        if not statuses:
            await route.fulfill(status=201, body="<p>A proxy answers.</p>")
            return
        error = {"code": "refused", "message": f"Refused by {statuses[0]}"}
        await route.fulfill(status=statuses.pop(0), json={"error": error})

    await page.route("**/upload", refuse)
    await field.set_input_files(_describe("c.pdf", PDF))
    await expect(message).to_have_text("Refused by 413.")
    await expect(retry).to_have_count(0)
    await page.get_by_role("button", name="Remove c.pdf").click()
    await field.set_input_files(_describe("c.pdf", PDF))
    await expect(message).to_have_text("Refused by 429.")
    await retry.click()
    await expect(message).to_have_text("Refused by 500.")
    await retry.click()
    # An answer that cannot be read.
    await expect(message).to_have_text("This could not be uploaded; please try again.")
    await page.unroute("**/upload")
    await form_page.lose("/upload", "answer")
    await retry.click()
    await expect(message).to_contain_text("the connection was lost")
    await retry.click()
    await expect(page.get_by_role("progressbar")).to_have_count(0)
    await expect(message).to_be_empty()
    await form_page.submit()
    await form_page.expect_success()
    (file,) = (await read_submission(developer, form))["files"]
    # The file whose answer was lost is the one that was submitted.
    assert await _list_files(services, developer) == [file["file_id"]]


async def _list_files(services: Services, client: Client) -> list[str]:
    sql = "SELECT file_id FROM form_uploads WHERE tenant_id = $1"
    return [row["file_id"] for row in await fetch_rows(services, sql, client.tenant_id)]


async def test_a_signature_is_typed_drawn_and_cleared(
    form_page: FormPage, developer: Client
) -> None:
    signature = {"id": "signature", "type": "signature", "label": "Signature", "required": True}
    form = await create_form(developer, signature)
    await form_page.open(form)
    page, name = form_page.page, form_page.page.get_by_label("Type your name to sign")
    await form_page.draw([(30, 30), (90, 60)])
    await page.get_by_role("button", name="Clear").click()
    await form_page.submit()
    await expect(form_page.message("signature")).to_have_text("This is required.")
    await name.fill("Ada Lovelace")
    await expect(form_page.message("signature")).to_be_empty()
    await take(page, "form-signature")
    # A drawing replaces the name.
    await form_page.draw([(30, 30), (90, 60)])
    await expect(name).to_have_value("")
    await name.fill("Ada")
    await form_page.submit()
    await form_page.expect_success()
    submission = await read_submission(developer, form)
    (file,) = submission["files"]
    assert submission["data"] == {"signature": file["file_id"]}
    content = await developer.get(f"/api/v1/forms/{form['id']}/files/{file['file_id']}")
    assert content.content.startswith(b"\x89PNG")
