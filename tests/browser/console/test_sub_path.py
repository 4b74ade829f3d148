"""The console behind a proxy that serves Parley under a path."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import ClientSession, web
from playwright.async_api import Page, expect

from tests.agents.definition.factories import create_agent
from tests.browser.console.console import Console
from tests.peer import Handler, Peer
from tests.server import Server
from tests.stores import Stores
from tests.world import Client

_PATH = "/parley"
# They belong to a connection.
_NOT_FORWARDED = {"connection", "content-length", "host", "transfer-encoding"}


class Proxy(Peer):
    """Forwards what is below the path, without it, and answers 404 to all else."""

    def __init__(self, client: ClientSession) -> None:
        super().__init__()
        self._client = client
        self.upstream = ""
        self.missed: list[str] = []

    def routes(self) -> dict[str, Handler]:
        return {"* /{path:.*}": self._forward}

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if not request.path.startswith(_PATH):
            self.missed.append(request.path)
            raise web.HTTPNotFound
        url = self.upstream + request.raw_path.removeprefix(_PATH)
        headers = {key: value for key, value in request.headers.items() if _is_forwarded(key)}
        async with self._client.request(
            request.method, url, headers=headers, data=await request.read(), allow_redirects=False
        ) as answer:
            response = web.Response(status=answer.status, body=await answer.read())
            for key, value in answer.headers.items():
                if _is_forwarded(key):
                    response.headers.add(key, value)
            return response


def _is_forwarded(name: str) -> bool:
    return name.lower() not in _NOT_FORWARDED


@pytest.fixture
async def proxy(stores: Stores) -> AsyncIterator[Proxy]:
    async with ClientSession(auto_decompress=False) as client:
        proxy = Proxy(client)
        await proxy.start()
        server = Server(msgspec.structs.replace(stores.settings, base_url=proxy.url + _PATH))
        try:
            server.wait()
            proxy.upstream = server.url
            yield proxy
        finally:
            server.close()
            await proxy.close()


async def test_the_console_runs_under_a_path(proxy: Proxy, page: Page, developer: Client) -> None:
    console = Console(page, proxy.url + _PATH)
    await create_agent(developer, name="Porter")
    await console.sign_in(developer)
    await console.open(title="Home")
    await page.get_by_role("link", name="Agents", exact=True).click()
    await console.row("Porter").click()
    await expect(console.heading).to_have_text("Porter")
    assert page.url.startswith(f"{console.url}/console/agents/agt_")
    await page.reload()
    await expect(console.heading).to_have_text("Porter")
    console.detach()
    assert console.problems == []
    assert proxy.missed == []
