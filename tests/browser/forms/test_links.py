"""Links in the texts of a form."""

from typing import Any

from aiohttp import web
from playwright.async_api import expect

from tests.browser.axe import find_violations
from tests.browser.forms.chat_page import Chat
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.forms.api import create_form
from tests.forms.definition.links import TEXTS
from tests.peer import answering
from tests.world import Client

_NO_MODEL = {"conversation": {"model": "none", "greeting": "Hello!"}}


def _build_fields(url: str) -> list[dict[str, Any]]:
    link = f"[privacy notice]({url}/privacy)"
    options = [{"value": "a", "label": f"Yes, by [our rules]({url}/rules)"}]
    return [
        {"id": "about", "type": "paragraph", "label": f"Please read our {link} first."},
        {"id": "news", "type": "checkbox_group", "label": "News", "options": options},
        {
            "id": "terms",
            "type": "checkbox",
            "label": f"I accept the {link}",
            "help_text": "Questions? [Write to us](mailto:privacy@example.com).",
            "required": True,
        },
    ]


async def _answer(_request: web.Request) -> web.Response:
    return web.Response(text="<title>Notice</title>", content_type="text/html")


async def test_a_link_opens_in_a_new_tab_and_leaves_the_box_as_it_is(
    form_page: FormPage, developer: Client
) -> None:
    page = form_page.page
    async with answering(_answer) as url:
        form = await create_form(developer, *_build_fields(url))
        await form_page.open(form)
        box, option = form_page.field("I accept the privacy notice"), page.get_by_role("checkbox")
        for name in ("privacy notice", "our rules"):
            async with page.context.expect_page() as opened:
                await page.locator(".field").get_by_role("link", name=name).click()
            tab = await opened.value
            await expect(tab).to_have_title("Notice")
            assert await tab.evaluate("window.opener") is None
            await tab.close()
        await expect(box).not_to_be_checked()
        await expect(option.first).not_to_be_checked()
        mail = page.get_by_role("link", name="Write to us")
        await expect(mail).to_have_attribute("href", "mailto:privacy@example.com")
        assert await find_violations(page) == []
        await form_page.submit()
        await expect(form_page.summary).to_contain_text("“I accept the privacy notice” must be")
        await take(page, "form-links")
        await page.locator(".box label").click(position={"x": 5, "y": 5})
        await expect(box).to_be_checked()
        await form_page.submit()
        await form_page.expect_success()
    assert (await read_submission(developer, form))["data"] == {"terms": True}


async def test_the_chat_has_links_and_what_a_visitor_says_stays_text(
    form_page: FormPage, developer: Client
) -> None:
    name = {"id": "name", "type": "text", "label": "Name"}
    nick = {"id": "nick", "type": "text", "label": "Nick"}
    fields = [name, nick, *_build_fields("https://example.com")[2:]]
    form = await create_form(developer, *fields, settings=_NO_MODEL)
    await form_page.open(form, "?mode=chat")
    chat, page = Chat(form_page.page), form_page.page
    await chat.expect_question("Name")
    await chat.say("[a](https://evil.example), my nick is [b](https://evil.example)")
    await chat.expect_question("I accept the privacy notice")
    link = page.locator(".bubble.assistant a", has_text="privacy notice")
    await expect(link).to_have_attribute("href", "https://example.com/privacy")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await expect(page.locator(".bubble a[href*=evil]")).to_have_count(0)
    await expect(page.locator("[aria-live=polite]")).to_contain_text("accept the privacy notice:")
    await take(page, "chat-links")
    await chat.press("Yes")
    await chat.expect_end()


async def test_all_other_texts_stay_texts(form_page: FormPage, developer: Client) -> None:
    label = "\n".join(text for text in TEXTS if text)
    form = await create_form(developer, {"id": "a", "type": "text", "label": label})
    await form_page.open(form)
    await expect(form_page.page.locator("label[for=field-a]")).to_have_text(label)
    await expect(form_page.page.locator(".field a")).to_have_count(0)
