"""A customer's page with the chat widget on it, and what a visitor does there."""

import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from playwright.async_api import Locator, Page, expect

from tests.conversations.embed.factories import create_embed_key
from tests.peer import Peer
from tests.scripted_agents import Talker
from tests.server import Server

_PAGE = """<!doctype html>
<html lang="en" dir="{dir}">
<head><meta charset="utf-8"><title>Shop</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>Shop</h1><p>Fine things.</p><button id="host">Buy</button></main>
{snippet}</body></html>"""


class HostSite(Peer):
    """A web site of another origin, which serves one page; its policy can be chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.page = ""
        self.policy: str | None = None

    def routes(self) -> dict[str, Any]:
        return {"GET /{rest:.*}": self._serve}

    async def _serve(self, request: web.Request) -> web.Response:
        if request.path != "/":
            raise web.HTTPNotFound
        headers = {"content-security-policy": self.policy} if self.policy else {}
        return web.Response(text=self.page, content_type="text/html", headers=headers)


@asynccontextmanager
async def serve_host() -> AsyncIterator[HostSite]:
    site = HostSite()
    await site.start()
    try:
        yield site
    finally:
        await site.close()


class Shop:
    """`requested_urls` are all addresses that the browser asked for."""

    def __init__(self, page: Page, site: HostSite, server: Server, talk: Talker) -> None:
        self.page = page
        self.site = site
        self.server = server
        self.talk = talk
        self.key: dict[str, Any] = {}
        self.requested_urls: list[str] = []
        page.on("request", lambda request: self.requested_urls.append(request.url))

    async def create_key(self, **fields: Any) -> None:
        """By default for this site alone."""
        rules = {"allowed_domains": [self.site.url], **fields}
        self.key = await create_embed_key(self.talk.client, self.talk.agent_id, **rules)

    async def open_page(self, *, direction: str = "ltr", **attributes: str) -> None:
        """Shows the page; `attributes` are those of the script tag, as `launcher_text="Chat"`."""
        if not self.key:
            await self.create_key()
        values = {
            "agent-id": self.talk.agent_id,
            "api-key": self.key["api_key"],
            **{name.replace("_", "-"): value for name, value in attributes.items()},
        }
        data = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in values.items())
        snippet = f'<script async src="{self.server.url}/embed/widget.js" {data}></script>'
        self.site.page = _PAGE.format(dir=direction, snippet=snippet)
        await self.page.goto(self.site.url)
        await expect(self.launcher).to_be_visible()

    async def site_without_widget(self) -> None:
        self.site.page = _PAGE.format(dir="ltr", snippet="")
        await self.page.goto(self.site.url)

    async def open_chat(self, **attributes: Any) -> None:
        await self.open_page(**attributes)
        await self.launcher.click()
        await expect(self.input).to_be_focused()
        await expect(self.messages).not_to_have_attribute("aria-busy", "true")

    @property
    def launcher(self) -> Locator:
        return self.page.locator("parley-chat button.launcher")

    @property
    def panel(self) -> Locator:
        return self.page.get_by_role("dialog")

    @property
    def input(self) -> Locator:
        return self.page.get_by_label("Your message")

    @property
    def messages(self) -> Locator:
        return self.page.locator("parley-chat .messages")

    @property
    def replies(self) -> Locator:
        return self.page.locator("parley-chat .message.assistant:not(.greeting)")

    @property
    def questions(self) -> Locator:
        return self.page.locator("parley-chat .message.user .body")

    @property
    def notice(self) -> Locator:
        return self.page.get_by_role("alert")

    def button(self, name: str) -> Locator:
        return self.panel.get_by_role("button", name=name, exact=True)

    async def send(self, text: str) -> None:
        await self.input.fill(text)
        await self.input.press("Enter")

    async def ask(self, text: str, reply: str) -> None:
        """Sends a message and waits for its whole reply."""
        await self.send(text)
        await expect(self.replies.last).to_contain_text(reply)
        await expect(self.button("Send")).to_be_visible()
