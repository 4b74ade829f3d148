"""The form page in other languages than English."""

from typing import Any

from aiohttp import web
from playwright.async_api import expect

from tests.browser.axe import CONTRAST, find_violations
from tests.browser.forms.every_field import FIELDS
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.forms.api import create_form
from tests.peer import answering
from tests.server import Server
from tests.world import Client

_POLICY = "default-src 'none'; script-src {url}; frame-src {url}"
_GERMAN: list[dict[str, Any]] = [
    {"id": "name", "type": "text", "label": "Ihr Name", "required": True},
    {
        "id": "day",
        "type": "date",
        "label": "Tag",
        "required": True,
        "validation": {"min_date": "2026-03-01"},
    },
    {"id": "share", "type": "slider", "label": "Anteil", "validation": {"max": 1, "step": 0.125}},
    {"id": "privacy", "type": "checkbox", "label": "Einverstanden?", "required": True},
]
_ARABIC: list[dict[str, Any]] = [
    {"id": "name", "type": "text", "label": "الاسم", "required": True},
    {"id": "stars", "type": "rating", "label": "التقييم"},
    {"id": "day", "type": "date", "label": "اليوم"},
    {"id": "file", "type": "file", "label": "ملف"},
    {"id": "age", "type": "number", "label": "العمر", "validation": {"min": 18, "max": 99}},
]
_NO_MODEL = {"conversation": {"model": "none"}}


def _list_tables(form_page: FormPage) -> list[str]:
    """Returns the names of the languages that were loaded."""
    paths = (request.url.rpartition("/languages/") for request in form_page.requests)
    return sorted({name for _, folder, name in paths if folder})


async def test_a_form_in_german(form_page: FormPage, developer: Client) -> None:
    form = await create_form(developer, *_GERMAN, name="Anmeldung")
    await form_page.open(form)
    assert _list_tables(form_page) == []
    await form_page.open(form, "?lang=de-AT")
    page = form_page.page
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await expect(page.locator(".legend")).to_have_text("Mit * markierte Felder sind Pflichtfelder.")
    await expect(form_page.submit_button).to_have_text("Absenden")
    await form_page.field("Tag").fill("2026-02-28")
    await form_page.field("Tag").blur()
    await expect(form_page.message("day")).to_have_text(
        "Das Datum darf nicht vor dem 1. März 2026 liegen."
    )
    await form_page.submit()
    await expect(form_page.summary).to_contain_text("Es gibt 3 Probleme")
    await expect(form_page.summary).to_contain_text("„Ihr Name“: diese Angabe ist erforderlich")
    assert await find_violations(page, *CONTRAST) == []
    await take(page, "form-de")
    await form_page.field("Ihr Name").fill("Ada")
    await form_page.field("Tag").fill("2026-03-03")
    await form_page.field("Einverstanden?").check()
    await form_page.submit()
    await form_page.expect_success("Vielen Dank. Ihre Antworten sind eingegangen.")
    assert _list_tables(form_page) == ["de.js"]


async def test_a_chat_in_german(form_page: FormPage, developer: Client) -> None:
    settings = {**_NO_MODEL, "language": "de"}
    form = await create_form(developer, *_GERMAN, name="Anmeldung", settings=settings)
    await form_page.open(form, "?mode=chat")
    page = form_page.page
    question = page.locator(".bubble.assistant:not(.typing)").last
    answer, send = (
        page.get_by_label("Ihre Antwort"),
        page.get_by_role("button", name="Diese Antwort senden"),
    )
    await expect(question).to_contain_text(
        "Guten Tag! Dies ist das Formular „Anmeldung“. Ihr Name?"
    )
    await answer.fill("Ich heiße Ada")
    await answer.press("Enter")
    await expect(question).to_contain_text("ein Datum ab dem 01.03.2026")
    await page.locator(".control input[type=date]").fill("2026-03-03")
    await send.click()
    await expect(question).to_contain_text("Anteil: bitte geben Sie an: eine Zahl von 0 bis 1")
    await expect(page.locator(".bubble.user").last).to_have_text("3. März 2026")
    await page.get_by_role("slider").press("ArrowRight")
    await send.click()
    await expect(question).to_contain_text("Einverstanden?")
    await expect(page.locator(".bubble.user").last).to_have_text("0,625")
    await take(page, "chat-de")
    await page.reload()
    await page.get_by_role("button", name="Ja", exact=True).click()
    await expect(page.locator(".outcome")).to_contain_text("Ihre Antworten wurden gesendet.")
    submission = await read_submission(developer, form)
    assert submission["data"] == {
        "name": "Ada",
        "day": "2026-03-03",
        "share": 0.625,
        "privacy": True,
    }


async def test_a_form_in_arabic_is_written_from_right_to_left(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, *_ARABIC, name="تسجيل", settings=_NO_MODEL)
    page = form_page.page
    await form_page.open(form, "?lang=ar")
    await expect(page.locator("html")).to_have_attribute("dir", "rtl")
    await form_page.field("العمر").fill("7")
    await form_page.field("العمر").blur()
    await expect(form_page.message("age")).to_have_text("يجب ألّا تقل القيمة عن 18.")
    await form_page.submit()
    await expect(form_page.summary).to_contain_text("توجد مشكلتان")
    heading = await page.locator("h1").bounding_box()
    button = await form_page.submit_button.bounding_box()
    assert heading is not None
    assert button is not None
    # The main button stands at the right edge.
    assert abs((button["x"] + button["width"]) - (heading["x"] + heading["width"])) < 40
    assert await find_violations(page, *CONTRAST) == []
    await take(page, "form-ar")
    await form_page.open(form, "?lang=ar&mode=chat")
    await expect(page.locator(".bubble.assistant").last).to_contain_text("مرحبًا! هذا هو النموذج")
    await take(page, "chat-ar")


async def test_every_field_is_translated(form_page: FormPage, developer: Client) -> None:
    form = await create_form(developer, *FIELDS, name="Alles")
    await form_page.open(form, "?lang=de")
    await form_page.submit()
    await expect(form_page.summary).to_be_visible()
    text = await form_page.page.locator("main").inner_text()
    for word in ("required", "This must", "Choose", "Type your", "At most", "time zone"):
        assert word not in text
    await take(form_page.page, "form-every-field-de")


async def test_a_page_with_a_strict_policy_embeds_a_form_in_its_language(
    form_page: FormPage, server: Server, developer: Client
) -> None:
    form = await create_form(developer, *_GERMAN, name="Anmeldung")
    plain = await create_form(developer, *_GERMAN, settings={"language": "fr"})
    tags = {
        "page": f'data-form="{form["slug"]}"',
        "named": f'data-form="{form["slug"]}" data-lang="pt-BR" data-text-submit="Mandar"',
        "setting": f'data-form="{plain["slug"]}"',
    }

    async def answer(request: web.Request) -> web.Response:
        tag = f'<script async src="{server.url}/embed/form.js" {tags[request.path[1:]]}></script>'
        text = f"<!doctype html><html lang=de-CH><title>Host</title><main>{tag}</main>"
        policy = {"content-security-policy": _POLICY.format(url=server.url)}
        return web.Response(text=text, content_type="text/html", headers=policy)

    async with answering(answer) as url:
        for name, text in (("page", "Absenden"), ("named", "Mandar"), ("setting", "Envoyer")):
            await form_page.page.goto(f"{url.replace('127.0.0.1', 'localhost')}/{name}")
            button = form_page.page.frame_locator("iframe").locator("form [type=submit]")
            await expect(button).to_have_text(text)
    assert _list_tables(form_page) == ["de.js", "fr.js", "pt.js"]


async def test_a_link_does_not_change_what_the_page_says(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, *_GERMAN)
    await form_page.open(form, '#texts={"submit":"Pay now"}')
    await expect(form_page.submit_button).to_have_text("Submit")
