"""Forms on pages of other sites."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from playwright.async_api import FrameLocator, Page, expect

from tests.assertions import wait_until
from tests.browser.axe import CONTRAST, find_violations
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.forms.api import EMAIL, TEXT, create_form
from tests.peer import answering
from tests.server import Server
from tests.world import Client

_TALL = {"id": "text", "type": "textarea", "label": "Text"}
_STRICT = "default-src 'none'; script-src {url}; frame-src {url}"
_FRAME_HEIGHT = "document.querySelector('iframe').getBoundingClientRect().height"
_CONTENT_HEIGHT = "document.body.getBoundingClientRect().height"


@asynccontextmanager
async def _serve(body: str, policy: str | None = None) -> AsyncIterator[str]:
    """Yields the address of a page of another site."""

    async def answer(_request: web.Request) -> web.Response:
        text = f"<!doctype html><html lang=en><title>Host</title><main><h1>Host</h1>{body}</main>"
        headers = {} if policy is None else {"content-security-policy": policy}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async with answering(answer) as url:
        yield url.replace("127.0.0.1", "localhost")


def _build_tag(server: Server, form: dict[str, Any], **data: str) -> str:
    attributes = "".join(f" data-{name}='{value}'" for name, value in data.items())
    return (
        f'<p>Before</p><script async src="{server.url}/embed/form.js" '
        f'data-form="{form["slug"]}"{attributes}></script><p>After</p>'
    )


async def _read_heights(page: Page) -> tuple[float, float]:
    """Returns the height of the frame, and of what it shows."""
    return await page.evaluate(_FRAME_HEIGHT), await page.frames[1].evaluate(_CONTENT_HEIGHT)


async def _expect_fit(page: Page) -> None:
    """Waits until the frame is as high as its content."""

    async def fits() -> bool:
        frame, content = await _read_heights(page)
        return 0 <= frame - content < 2

    await wait_until(fits, 15)


def _find_frame(page: Page) -> FrameLocator:
    return page.frame_locator("iframe")


async def test_the_script_shows_the_form_where_it_stands_and_as_high_as_it_is(
    page: Page, server: Server, developer: Client
) -> None:
    conditional = {"field": "name", "operator": "is_not_empty"}
    hidden = {"id": "campaign", "type": "hidden", "label": "Campaign"}
    form = await create_form(developer, TEXT, {**_TALL, "conditional": conditional}, hidden)
    logs: list[str] = []
    page.on("console", lambda line: logs.append(line.text))
    tag = _build_tag(server, form, values='{"campaign": "spring"}')
    async with _serve("") as url:
        await page.goto(url)
        names = await page.evaluate("Object.keys(window)")
    async with _serve(tag, _STRICT.format(url=server.url)) as url:
        await page.goto(f"{url}/shop/page?secret=1")
        frame = _find_frame(page)
        await expect(frame.get_by_role("heading")).to_have_text("Contact")
        await expect(page.locator("p + iframe:has(+ p)")).to_have_attribute("title", "Contact")
        await expect(page.locator("script")).to_have_count(0)
        await _expect_fit(page)
        before, _ = await _read_heights(page)
        await frame.get_by_label("Your name").fill("Ada")
        await expect(frame.get_by_label("Text")).to_be_visible()
        await _expect_fit(page)
        assert (await _read_heights(page))[0] > before
        await take(page, "form-embedded")
        await page.evaluate(
            "addEventListener('parley:submitted', event => { window.sent = event.detail })"
        )
        await frame.locator("[type=submit]").click()
        await expect(frame.locator(".outcome")).to_be_visible()
        await _expect_fit(page)
    submission = await read_submission(developer, form)
    assert submission["data"] == {"name": "Ada", "campaign": "spring"}
    assert submission["metadata"]["source"] == "embed"
    # Without its query, which may have secrets.
    assert submission["metadata"]["referrer"] == f"{url}/shop/page"
    assert await page.evaluate("window.sent") == {"submissionId": submission["id"]}
    assert logs == []
    # The frame, and what this test has set.
    assert set(await page.evaluate("Object.keys(window)")) - set(names) == {"0", "sent"}


async def test_only_the_form_changes_the_frame_and_redirects_the_page_around_it(
    page: Page, server: Server, developer: Client
) -> None:
    async with _serve("") as next_url:
        form = await create_form(developer, settings={"redirect_url": f"{next_url}/thanks"})
        async with _serve(_build_tag(server, form)) as url:
            await page.goto(url)
            await expect(_find_frame(page).get_by_label("Your name")).to_be_visible()
            await _expect_fit(page)
            await _expect_no_change(page)
            assert page.url.startswith(url)
            await _find_frame(page).get_by_label("Your name").fill("Ada")
            await _find_frame(page).locator("[type=submit]").click()
            await page.wait_for_url(f"{next_url}/thanks")


async def _expect_no_change(page: Page) -> None:
    """Messages of others do not change the frame, and wrong ones of the frame do not either."""
    before, _ = await _read_heights(page)
    for message in (
        {"type": "parley:height", "height": 5000},
        {"type": "parley:redirect", "url": "https://evil.example"},
    ):
        await page.evaluate("message => window.postMessage(message, '*')", message)
    script = "url => parent.postMessage({ type: 'parley:redirect', url }, '*')"
    await page.frames[1].evaluate(script, "javascript:document.title='hacked'")
    await page.frames[1].evaluate("parent.postMessage({ type: 'parley:height', height: -1 })")
    assert (await _read_heights(page))[0] == before
    assert await page.title() == "Host"


async def test_a_plain_frame_scrolls_to_the_problems_and_redirects_the_page_around_it(
    page: Page, server: Server, developer: Client
) -> None:
    fields = [{**TEXT, "id": f"name{number}", "required": not number} for number in range(20)]
    async with _serve("") as next_url:
        settings = {"redirect_url": f"{next_url}/thanks"}
        form = await create_form(developer, *fields, settings=settings)
        code = (await developer.get(f"/api/v1/public/forms/{form['slug']}/embed")).json()
        frame_tag = re.sub('src="[^"]*/f/', f'src="{server.url}/f/', code["data"]["iframe_embed"])
        async with _serve(frame_tag) as url:
            await page.goto(url)
            frame = _find_frame(page)
            await frame.locator("[type=submit]").click()
            await expect(frame.locator(".summary")).to_be_focused()
            await expect(frame.locator(".summary")).to_be_in_viewport()
            assert await page.evaluate(_FRAME_HEIGHT) == 600
            await take(page, "form-framed")
            await frame.get_by_label("Your name").first.fill("Ada")
            await frame.locator("[type=submit]").click()
            await page.wait_for_url(f"{next_url}/thanks")


async def test_the_form_fits_a_dark_page_and_a_light_one(
    page: Page, server: Server, developer: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    # Whatever the visitor prefers, the page around decides.
    await page.emulate_media(color_scheme="dark")
    for style, scheme in (("color: #eee; background: #111", "dark"), ("color: #111", "light")):
        async with _serve(f"<div style='{style}'>{_build_tag(server, form)}</div>") as url:
            await page.goto(url)
            frame = _find_frame(page)
            await expect(frame.get_by_label("Your name")).to_be_visible()
            await expect(frame.locator("html")).to_have_css("color-scheme", scheme)
            await _expect_fit(page)
            await take(page, f"form-embedded-{scheme}")
            assert await find_violations(page, *CONTRAST) == []


async def test_the_script_shows_a_chat(page: Page, server: Server, developer: Client) -> None:
    settings = {"conversation": {"model": "none"}}
    form = await create_form(developer, TEXT, EMAIL, settings=settings)
    async with _serve(_build_tag(server, form, mode="chat", height="500")) as url:
        await page.goto(url)
        frame = _find_frame(page)
        await expect(frame.locator(".bubble")).to_contain_text("Your name")
        await take(page, "chat-embedded")
        await frame.get_by_label("Your answer").fill("Ada")
        await page.keyboard.press("Enter")
        await expect(frame.locator(".bubble.assistant").last).to_contain_text("Your e-mail")
        assert await page.evaluate(_FRAME_HEIGHT) == 500


async def test_the_page_without_storage_still_works(
    form_page: FormPage, server: Server, developer: Client
) -> None:
    """A sandboxed frame has no origin, and so no storage."""
    settings = {"conversation": {"model": "none"}}
    form = await create_form(developer, TEXT, settings=settings)
    source = f"{server.url}/f/{form['slug']}?mode=chat"
    tag = f'<iframe sandbox="allow-scripts allow-forms" src="{source}" height="600"></iframe>'
    async with _serve(tag) as url:
        await form_page.page.goto(url)
        frame = _find_frame(form_page.page)
        await expect(frame.locator(".bubble")).to_contain_text("Your name")
        await frame.get_by_label("Your answer").fill("Ada")
        await form_page.page.keyboard.press("Enter")
        await expect(frame.locator(".outcome")).to_be_visible()
    assert (await read_submission(developer, form))["data"] == {"name": "Ada"}
