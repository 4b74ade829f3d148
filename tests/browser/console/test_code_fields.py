"""Fields for code: the editor, and the plain text where it is not loaded."""

import asyncio

import msgspec
from playwright.async_api import Locator, Page, Route, expect

from app.web.console_build import DIST
from tests.browser import looks
from tests.browser.console.console import Console
from tests.browser.console.test_tools import ECHO, create_tool, get_tool
from tests.world import Client

SCHEMA = "Input schema (optional)"


def editor_path() -> str:
    """The address of the first script that only editors load."""
    parts = msgspec.json.decode((DIST / "manifest.json").read_bytes())["parts"]
    others = {name for part, names in parts.items() if part != "code_editor" for name in names}
    [name, *_] = [name for name in parts["code_editor"] if name not in others]
    return f"**/console/files/{name}"


async def open_tool(console: Console, user: Client) -> str:
    tool_id = await create_tool(user)
    await console.sign_in(user)
    await console.open(f"/tools/{tool_id}", title="Echo")
    return tool_id


def editor(page: Page, name: str) -> Locator:
    return page.locator(f'.code-editor .cm-content[aria-label="{name}"]')


async def test_code_has_an_editor_that_the_keyboard_can_leave(
    console: Console, developer: Client
) -> None:
    page, keyboard = console.page, console.page.keyboard
    tool_id = await open_tool(console, developer)
    schema = editor(page, SCHEMA)
    # A field that has the focus stays a plain one.
    await expect(schema).to_be_visible()
    await page.locator("label", has_text="Input schema").click()
    await expect(schema).to_be_focused()
    await keyboard.type('{"type": "object", ')
    await expect(schema).to_have_attribute("aria-invalid", "true")
    await expect(page.locator(".cm-problem").first).to_be_visible()
    about = "element => element.getRootNode().getElementById('about').textContent"
    assert "This is not valid JSON" in await schema.evaluate(about)
    assert await looks.find_problems(page, "console-code", 1280, 360) == []
    await console.widen()
    await keyboard.press("Tab")
    await expect(schema).not_to_be_focused()
    await schema.fill('{"type": "object"}')
    await expect(schema).not_to_have_attribute("aria-invalid", "true")
    code = editor(page, "Code")
    await code.focus()
    await keyboard.press("Control+Home")
    await keyboard.type("import os")
    await keyboard.press("Enter")
    await keyboard.press("Control+m")
    await keyboard.press("Tab")
    await keyboard.press("Control+s")
    await expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    tool = await get_tool(developer, tool_id)
    assert tool["config"]["code"] == f"import os\n    {ECHO}"
    assert tool["input_schema"] == {"type": "object"}


async def test_what_is_typed_before_the_editor_is_there_is_kept(
    console: Console, developer: Client
) -> None:
    page, is_requested = console.page, asyncio.Event()
    answers: list[Route] = []

    def hold(route: Route) -> None:
        answers.append(route)
        is_requested.set()

    await page.route(editor_path(), hold)
    tool_id = await open_tool(console, developer)
    await is_requested.wait()
    schema = page.locator("textarea").and_(console.field(SCHEMA))
    await schema.press_sequentially('{"a": ')
    await answers.pop().continue_()
    await expect(editor(page, "Code")).to_be_visible()
    await expect(schema).to_be_focused()
    await schema.press_sequentially("1}")
    await page.keyboard.press("Tab")
    await expect(editor(page, SCHEMA)).to_have_text('{"a": 1}')
    await page.unroute(editor_path())
    await page.route(editor_path(), lambda route: route.abort())
    await page.reload()
    await expect(console.button("Restore them")).to_be_visible()
    await console.field("Code").fill("def main(input): return 1")
    await console.button("Save").click()
    await expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    tool = await get_tool(developer, tool_id)
    assert tool["config"]["code"] == "def main(input): return 1"
