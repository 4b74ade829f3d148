"""An open tab of the console while the server restarts, and after an upgrade."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, Request, Route, expect

from tests.browser.console.console import Console
from tests.browser.console.conversation_rows import add_conversation
from tests.browser.tab import Tab
from tests.scripted_agents import Talker
from tests.server import Server
from tests.stores import Stores

PROMPT = "You are a pirate."
_COME_BACK = "document.dispatchEvent(new Event('visibilitychange'))"


@pytest.fixture
async def own_server(stores: Stores, server: Server) -> AsyncIterator[Server]:
    """A server that the test may end, on the stores of the others."""
    own = Server(stores.settings)
    own.wait()
    yield own
    own.close()


async def open_tab(browser: Browser, server: Server, talk: Talker) -> tuple[Console, Console]:
    """Two tabs of one browser, whose user is signed in."""
    context = await browser.new_context(reduced_motion="reduce")
    consoles = [Console(await context.new_page(), server.url) for _ in range(2)]
    await consoles[0].sign_in(talk.client)
    return consoles[0], consoles[1]


async def expect_not_reloaded(*pages: Page) -> None:
    for page in pages:
        assert await page.evaluate("window.marked"), page.url


async def test_open_tabs_go_on_after_a_restart_of_the_server(
    browser: Browser, own_server: Server, talk: Talker
) -> None:
    editor, conversations = await open_tab(browser, own_server, talk)
    await add_conversation(talk, "Before the restart", minutes=5)
    await editor.open(f"/agents/{talk.agent_id}", title="Talker")
    await conversations.open("/conversations", title="Conversations")
    await expect(conversations.row("Before the restart")).to_be_visible()
    pages = (editor.page, conversations.page)
    for page in pages:
        await page.evaluate("window.marked = true")
    field = editor.field("Instructions")
    await field.fill(PROMPT)
    own_server.close()
    await editor.button("Save draft").click()
    alert = editor.page.get_by_role("alert")
    await expect(alert).to_contain_text("The server cannot be reached")
    await expect(field).to_have_value(PROMPT)
    await expect(editor.page.get_by_text("Unsaved changes")).to_be_visible()
    # A screen that this tab has not loaded yet.
    await editor.page.get_by_role("link", name="Tools", exact=True).press("Enter")
    await conversations.page.evaluate(_COME_BACK)
    await expect(conversations.row("Before the restart")).to_be_visible()

    await add_conversation(talk, "After the restart")
    own_server.start()
    own_server.wait()
    await expect(editor.heading).to_have_text("Tools")
    await editor.page.go_back()
    await editor.button("Restore them").click()
    await expect(field).to_have_value(PROMPT)
    await editor.button("Save draft").click()
    await expect(editor.page.get_by_text("Saved", exact=True)).to_be_visible()
    assert (await talk.client.get(f"{talk.path}/draft")).json()["system_prompt"] == PROMPT
    await conversations.page.evaluate(_COME_BACK)
    await expect(conversations.row("After the restart")).to_be_visible()
    await expect_not_reloaded(*pages)
    await editor.page.context.close()
    assert editor.problems + conversations.problems == []


async def test_a_part_that_an_upgrade_has_removed_reloads_the_page_once(
    console: Console, talk: Talker, tab: Tab
) -> None:
    known: set[str] = set()
    kept: frozenset[str] = frozenset()
    loads: list[str] = []

    def note(request: Request) -> None:
        known.add(request.url)

    async def remove_parts(route: Route) -> None:
        if route.request.url in kept:
            await route.continue_()
        else:
            await route.fulfill(status=404, json={})

    console.page.on("request", note)
    await console.sign_in(talk.client)
    await console.open(title="Home")
    await expect(console.page.get_by_text("Nothing has failed")).to_be_visible()
    console.page.on("load", lambda _: loads.append(console.path))
    kept = frozenset(known)
    await console.page.route("**/console/files/**", remove_parts)
    await console.page.get_by_role("link", name="Tools", exact=True).click()
    await expect(console.page.get_by_text("Something on this page failed")).to_be_visible()
    assert loads == ["/tools"]
    # The page has reported the failure.
    assert {error.split(":")[0] for error in tab.errors} == {
        "Failed to fetch dynamically imported module"
    }
    tab.errors.clear()
    await console.page.unroute("**/console/files/**")
    await console.button("Load again").click()
    await expect(console.heading).to_have_text("Tools")
