"""Lists that follow what happens."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from playwright.async_api import Request, expect

from tests.browser.console.console import Console
from tests.model_server import Reply
from tests.scripted_agents import Talker

# Without it, lists are read again now and then.
_NO_POLLS = "window.setInterval = () => 0"


@asynccontextmanager
async def _open_tab(console: Console) -> AsyncIterator[Console]:
    page = await console.page.context.new_page()
    await page.add_init_script(_NO_POLLS)
    tab = Console(page, console.url)
    await tab.open("/conversations", title="Conversations")
    try:
        yield tab
        assert tab.problems == []
    finally:
        await page.close()


def _is_stream(request: Request) -> bool:
    return request.url.endswith("/event-log/stream")


async def _ask(talk: Talker, question: str) -> None:
    talk.script(Reply())
    await talk.say(question)


async def test_one_tab_listens_for_all_of_a_browser(console: Console, talk: Talker) -> None:
    context = console.page.context
    await console.sign_in(talk.client)
    async with AsyncExitStack() as second, AsyncExitStack() as first:
        async with context.expect_event("request", _is_stream):
            listening = await first.enter_async_context(_open_tab(console))
        other = await second.enter_async_context(_open_tab(console))
        await _ask(talk, "When do you open?")
        for tab in (listening, other):
            await expect(tab.row("When do you open?")).to_be_visible()
        # The other one listens when this one is closed.
        async with context.expect_event("request", _is_stream):
            await first.aclose()
        await _ask(talk, "And on Sundays?")
        await expect(other.row("And on Sundays?")).to_be_visible()
