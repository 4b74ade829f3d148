"""Measures what the chat widget adds to the first paint of a page, and to what the page loads."""

import statistics
from collections.abc import Callable

from aiohttp import web
from playwright.async_api import Browser, async_playwright

from app.web import assets
from tests.browser.chromium import find_program
from tests.conversations.embed.factories import create_agent, create_embed_key
from tests.peer import answering
from tests.world import World

Row = Callable[..., None]
_LOADS = 15
_MAX_MS = 50
_MAX_BYTES = 5000
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title></head>
<body><h1>Shop</h1>{paragraphs}{snippet}</body></html>"""
_PARAGRAPHS = "<p>Fine things for every day, made by hand.</p>" * 200
_READ_PAINT = """async () => {
    while (!performance.getEntriesByName("first-contentful-paint").length) {
        await new Promise((resolve) => { setTimeout(resolve, 10); });
    }
    return performance.getEntriesByName("first-contentful-paint")[0].startTime;
}"""


async def bench(world: World, ports: dict[str, int], row: Row) -> None:
    developer = await world.user("agent_developer")
    agent_id = await create_agent(developer)
    key = await create_embed_key(developer, agent_id)
    snippet = (
        f'<script async src="http://127.0.0.1:{ports["parley"]}/embed/widget.js" '
        f'data-agent-id="{agent_id}" data-api-key="{key["api_key"]}"></script>'
    )

    async def serve(request: web.Request) -> web.Response:
        own = snippet if request.path == "/with" else ""
        page = _PAGE.format(paragraphs=_PARAGRAPHS, snippet=own)
        return web.Response(text=page, content_type="text/html")

    async with answering(serve) as url, async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=find_program(), args=["--no-sandbox", "--disable-gpu"]
        )
        paints: dict[str, list[float]] = {"without": [], "with": []}
        for _ in range(_LOADS):
            for name, times in paints.items():
                times.append(await _load(browser, f"{url}/{name}"))
        await browser.close()
    size = len(assets.load("widget/launcher.js", "/embed").gzipped)
    without, with_widget = (statistics.median(times) for times in paints.values())
    added = with_widget - without
    ours, bare = f"{with_widget:.0f} ms", f"{without:.0f} ms"
    row(
        "first paint with the widget",
        ours,
        bare,
        f"{added:+.0f} ms",
        "50 ms",
        holds=added <= _MAX_MS,
    )
    kilobytes = f"{size / 1000:.1f} kB"
    row("bytes of the launcher", kilobytes, "", kilobytes, "5 kB", holds=size <= _MAX_BYTES)


async def _load(browser: Browser, url: str) -> float:
    """Loads the page in a browser without a cache, and returns when it was painted first, in ms."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(url, wait_until="load")
    paint: float = await page.evaluate(_READ_PAINT)
    await context.close()
    return paint
