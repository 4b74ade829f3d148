"""Texts of authors, visitors and servers are texts: none of them becomes HTML or an address."""

from typing import Any

from aiohttp import web
from playwright.async_api import Dialog, Route, expect

from tests.browser.forms.form_page import FormPage
from tests.forms.api import create_form, update_form
from tests.peer import answering
from tests.world import Client

EVIL = (
    "<img src=//evil.invalid/x onerror=\"document.title='hacked'\"><script>document.title='hacked'"
    "</script><a href=\"javascript:document.title='hacked'\">x</a><style>*{display:none}</style>"
)
_OPTIONS = [{"value": EVIL[:200], "label": EVIL[:200]}, {"value": "b", "label": "<b>B</b>"}]
_ELEMENTS = "main :is(img, script, style, iframe, a[href^='javascript']), main b"


def _build_fields() -> list[dict[str, Any]]:
    texts = {"label": EVIL, "help_text": EVIL, "placeholder": EVIL[:200]}
    kinds = ("text", "textarea", "section", "paragraph", "checkbox", "file", "signature", "rating")
    plain = [{"id": kind, "type": kind, **texts} for kind in kinds]
    choices = ("select", "radio", "multi_select", "checkbox_group")
    return plain + [{"id": kind, "type": kind, "options": _OPTIONS, **texts} for kind in choices]


async def _expect_harmless(form_page: FormPage) -> None:
    assert await form_page.page.title() != "hacked"
    await expect(form_page.page.locator(_ELEMENTS)).to_have_count(0)
    assert form_page.external_urls == []


async def test_hostile_texts_of_a_form_run_nothing_and_request_nothing(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(
        developer,
        *_build_fields(),
        name=EVIL[:100],
        description=EVIL,
        settings={"success_message": EVIL, "submit_button_text": EVIL[:100]},
    )
    await form_page.open(form, "?text=%3Cimg%20src=x%20onerror=alert(1)%3E")
    page = form_page.page
    await expect(page.get_by_role("heading", level=1)).to_have_text(EVIL[:100])
    await page.locator(".picker > summary").click()
    await page.locator(".picker .choice").first.click()
    await _expect_harmless(form_page)

    error = {"field": "text", "message": EVIL}
    unknown = {"field": EVIL, "message": EVIL}

    async def refuse(route: Route) -> None:
        details = {"errors": [error, unknown]}
        body = {"error": {"code": "validation_error", "message": EVIL, "details": details}}
        await route.fulfill(status=400, json=body)

    await page.route("**/submit", refuse)
    await form_page.submit()
    await expect(form_page.summary).to_contain_text("<img src=//evil.invalid")
    await _expect_harmless(form_page)
    await page.unroute("**/submit")
    await form_page.submit()
    await form_page.expect_success(EVIL)
    await _expect_harmless(form_page)


async def test_the_chat_shows_hostile_texts_as_texts(
    form_page: FormPage, developer: Client
) -> None:
    settings = {"conversation": {"model": "none", "greeting": EVIL}}
    fields = [{**field, "required": True} for field in _build_fields() if field["id"] == "text"]
    form = await create_form(developer, *fields, name=EVIL[:100], settings=settings)
    await form_page.open(form, "?mode=chat")
    page = form_page.page
    await expect(page.locator(".bubble").first).to_contain_text("<script>")
    await page.get_by_label("Your answer").fill(EVIL)
    await page.keyboard.press("Enter")
    await expect(page.locator(".bubble.user")).to_have_text(EVIL)
    await expect(page.locator(".outcome")).to_be_visible()
    await _expect_harmless(form_page)


async def test_a_sent_form_leads_to_the_page_that_follows_it(
    form_page: FormPage, developer: Client
) -> None:
    async def thank(_request: web.Request) -> web.Response:
        return web.Response(text="<title>Thanks</title>", content_type="text/html")

    async with answering(thank) as url:
        form = await create_form(developer, settings={"redirect_url": f"{url}/thanks"})
        await form_page.open(form)
        await form_page.field("Your name").fill("Ada")
        await form_page.submit()
        await form_page.page.wait_for_url(f"{url}/thanks")
        # The draft or the answers of the address do not leak to the other site.
        assert await form_page.page.evaluate("document.referrer") == ""


async def test_a_redirect_that_is_no_web_address_is_not_followed(
    form_page: FormPage, developer: Client
) -> None:
    """The server refuses such an address; the page does not rely on it."""
    form = await create_form(developer, settings={"redirect_url": "https://example.com/x"})

    async def replace(route: Route) -> None:
        answer = await route.fetch()
        text = (await answer.text()).replace("https://example.com/x", "javascript:alert(1)//")
        await route.fulfill(response=answer, body=text)

    dialogs: list[str] = []

    async def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        await dialog.dismiss()

    form_page.page.on("dialog", note)
    await form_page.page.route(f"**/f/{form['slug']}", replace)
    await form_page.open(form)
    await form_page.field("Your name").fill("Ada")
    await form_page.submit()
    await form_page.expect_success()
    await expect(form_page.page.get_by_role("link", name="Continue")).to_have_count(0)
    form_page.page.remove_listener("dialog", note)
    assert dialogs == []


async def test_an_author_cannot_redirect_to_a_script(developer: Client) -> None:
    form = await create_form(developer)
    answer = await developer.put(
        f"/api/v1/forms/{form['id']}", {"settings": {"redirect_url": "javascript:alert(1)"}}
    )
    assert answer.status_code == 422
    assert (await update_form(developer, form, name="Same"))["settings"]["redirect_url"] is None
