"""Settings in the console: keys, models, work in the background, and the instance."""

from typing import Any

import pytest
from playwright.async_api import Route, expect

from app.services import Services
from tests.browser import hostile
from tests.browser.console.console import Console
from tests.browser.console.work_rows import NOT_RETRYABLE, add_dead_work
from tests.database import run_sql
from tests.scripted_agents import Talker
from tests.world import Client, World

_STATE = "SELECT state FROM work WHERE id = $1"


@pytest.fixture
async def owner(talk: Talker) -> Client:
    """An administrator of a tenant that has the key of a scripted provider."""
    return await talk.world.user("tenant_admin", talk.client.tenant_id)


async def test_a_provider_key_is_added_tested_and_deleted_by_keyboard(
    console: Console, owner: Client
) -> None:
    await console.sign_in(owner)
    await console.open("/settings", title="Settings")
    keyboard = console.page.keyboard
    await console.button("Add a key").first.press("Enter")
    dialog = console.dialog("Add a provider key")
    await dialog.get_by_label("Key", exact=True).focus()
    await keyboard.type("sk-proj-0123456789abcdef")
    await dialog.get_by_label("Name").focus()
    await keyboard.type(hostile.HTML[:90])
    await keyboard.press("Enter")
    await expect(dialog).to_have_count(0)
    await expect(console.row("window.hacked")).to_contain_text("…cdef")
    assert "sk-proj" not in await console.page.content()
    menu = console.page.get_by_role("button", name="Actions for Scripted")
    await menu.press("Enter")
    # The menu opens a moment later.
    items = console.page.get_by_role("menuitem")
    await expect(items.first).to_be_focused()
    await keyboard.press("Enter")
    result = console.page.get_by_text("Scripted works.")
    await expect(result).to_contain_text("lists")
    await menu.press("Enter")
    await expect(items.first).to_be_focused()
    await keyboard.press("ArrowDown")
    await keyboard.press("Enter")
    await (
        console.dialog("Delete Scripted?")
        .get_by_role("button", name="Delete the key")
        .press("Enter")
    )
    await expect(console.row("Scripted")).to_have_count(0)
    assert await hostile.find_harm(console.page, []) == []


async def test_what_is_wrong_with_a_key_stands_beside_its_field(
    console: Console, owner: Client
) -> None:
    await console.sign_in(owner)
    await console.open("/settings?new=key", title="Settings")
    dialog = console.dialog("Add a provider key")
    await dialog.get_by_label("Provider", exact=True).select_option(
        label="Another one, by its address"
    )
    await dialog.get_by_label("Name of the provider").fill("Not A Word!")
    await dialog.get_by_label("Key", exact=True).fill("abcdef")
    await dialog.get_by_label("Address").fill("http://169.254.169.254/v1")
    await dialog.get_by_role("button", name="Add a key").click()
    field = dialog.get_by_label("Name of the provider")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await field.fill("acme")
    await dialog.get_by_role("button", name="Add a key").click()
    await expect(dialog.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    await expect(dialog.get_by_label("Key", exact=True)).to_have_value("abcdef")


async def test_a_key_that_the_provider_refuses_says_why(console: Console, owner: Client) -> None:
    refusal = {
        "success": False,
        "message": hostile.HTML,
        "latency_ms": 12,
        "tested_at": "2026-01-01T12:00:00Z",
    }
    await console.page.route("**/test", lambda route: route.fulfill(json=refusal))
    await console.sign_in(owner)
    await console.open("/settings", title="Settings")
    await console.page.get_by_role("button", name="Actions for Scripted").click()
    await console.page.get_by_role("menuitem", name="Test the key").click()
    await expect(console.page.get_by_text("Scripted does not work.")).to_be_visible()
    assert await hostile.find_harm(console.page, []) == []
    await console.page.get_by_role("tab", name="Models").click()
    await expect(console.page.get_by_role("tabpanel")).to_contain_text("US dollars")


async def test_a_service_key_is_shown_once_works_and_is_revoked(
    console: Console, owner: Client, talk: Talker
) -> None:
    await console.sign_in(owner)
    await console.open("/settings?tab=service", title="Settings")
    await console.button("New service key").click()
    dialog = console.dialog("New service key")
    await dialog.get_by_label("Name").fill("Order import")
    await dialog.get_by_label("Role").select_option("agent_developer")
    await dialog.get_by_label("Only for some agents").check()
    await expect(dialog.get_by_role("button", name="Create the key")).to_be_disabled()
    await console.pick("Another agent", "Talker")
    await expect(console.button("Remove Talker")).to_be_visible()
    await dialog.get_by_role("button", name="Create the key").click()
    shown = console.dialog("The key is ready")
    key = await shown.get_by_label("Key", exact=True).inner_text()
    # Escape must not lose the key.
    await console.page.keyboard.press("Escape")
    await shown.get_by_role("button", name="I have stored it").click()
    await expect(console.row("Order import")).to_contain_text("1 agent")
    program = Client(owner.app, key)
    assert (await program.get(talk.path)).status_code == 200
    await console.page.reload()
    await console.button("Revoke Order import").click()
    assert key not in await console.page.content()
    await (
        console.dialog("Revoke Order import?").get_by_role("button", name="Revoke the key").click()
    )
    await expect(console.page.get_by_text("Let your programs call the API")).to_be_visible()
    assert (await program.get(talk.path)).status_code == 401


async def test_dead_work_is_retried_dismissed_or_says_what_helps(
    console: Console, admin: Client, services: Services
) -> None:
    ids = [await add_dead_work(services, admin.tenant_id) for _ in range(2)]
    await add_dead_work(services, admin.tenant_id, NOT_RETRYABLE, hostile.HTML)
    await console.sign_in(admin)
    await console.open(f"/settings?tab=work&work={ids[0]}", title="Settings")
    dialog = console.dialog("Run the action of a subscription")
    await expect(dialog).to_contain_text("unexpected OSError")
    await dialog.get_by_role("button", name="Retry").click()
    await expect(dialog).to_have_count(0)
    rows = console.page.get_by_role("table", name="Work").get_by_role("row")
    await expect(rows).to_have_count(3)
    assert await _state_of(services, ids[0]) != "dead"
    await rows.filter(has_text="Run a tool").focus()
    await console.page.keyboard.press("Enter")
    tool = console.dialog("Run a tool")
    await expect(tool).to_contain_text("Execute the tool again")
    await expect(tool.get_by_role("button", name="Retry")).to_have_count(0)
    await tool.get_by_role("button", name="Dismiss").click()
    await expect(rows).to_have_count(2)
    await console.button("Retry all").click()
    await expect(console.page.get_by_text("1 retried")).to_be_visible()
    await expect(console.page.get_by_text("No work has failed")).to_be_visible()
    assert await hostile.find_harm(console.page, []) == []


async def _state_of(services: Services, work_id: str) -> str:
    rows: list[dict[str, Any]] = await run_sql(services, _STATE, work_id)
    return rows[0]["state"] if rows else "done"


async def test_settings_name_the_variable_that_has_set_them(
    console: Console, super_admin: Client
) -> None:
    async def set_variable(route: Route) -> None:
        # As if the environment of the server had set it.
        answer = await route.fetch()
        body = await answer.json()
        for setting in body["data"]:
            if setting["name"] in {"base_url", "database_url"}:
                setting |= {"source": "environment", "is_set": True}
        await route.fulfill(json=body)

    await console.page.route("**/api/v1/settings", set_variable)
    await console.sign_in(super_admin)
    await console.open("/settings?tab=instance&source=environment", title="Settings")
    panel = console.page.get_by_role("tabpanel")
    await expect(panel.locator("dd")).to_have_count(2)
    for variable in ("PARLEY_BASE_URL", "PARLEY_DATABASE_URL"):
        row = panel.locator("dd").filter(has_text=variable)
        await expect(row).to_contain_text("Not editable here")
    await expect(panel.get_by_text("Is set (secret)")).to_be_visible()
    await expect(panel.get_by_role("textbox")).to_have_count(0)
    await panel.get_by_role("searchbox").fill("nothing is named so")
    await console.button("Clear filters").click()
    await expect(panel.get_by_text("requests_per_minute")).to_be_visible()


async def test_tabs_and_actions_are_those_of_the_role(console: Console, world: World) -> None:
    await console.sign_in(await world.user("agent_developer"))
    await console.open("/settings?new=key", title="Settings")
    await expect(console.page.get_by_role("tab")).to_have_text(["Provider keys", "Models"])
    await expect(console.page.get_by_text("Add the key of a model provider")).to_be_visible()
    await expect(console.button("Add a key")).to_have_count(0)
    await console.page.context.clear_cookies()
    await console.sign_in(await world.user("agent_user"))
    await console.open("/settings", title="This screen does not exist")
