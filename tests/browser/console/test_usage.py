"""Usage in the console: over time, by group, and against the limits."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from app.services import Services
from tests.agents.usage.rows import add_usage
from tests.browser import hostile
from tests.browser.console.console import Console
from tests.conversations.embed.factories import create_embed_key
from tests.scripted_agents import Talker
from tests.world import Client, World

FORMULA = "=HYPERLINK(1)"


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture
async def used(admin: Client, services: Services) -> Client:
    """An administrator of a tenant whose agents used two models."""
    for model, tokens, cost in (
        (hostile.HTML[:150], (9000, 1000), "3.5"),
        (FORMULA, (500, 100), "0.5"),
    ):
        await add_usage(
            services, admin.tenant_id, model=model, tokens=tokens, cost=cost, conversations=1
        )
    return admin


async def test_usage_is_grouped_and_narrowed_by_keyboard(console: Console, used: Client) -> None:
    await console.sign_in(used)
    await console.open("/usage", title="Usage")
    keyboard = console.page.keyboard
    tiles = console.page.locator(".tile")
    await expect(tiles.filter(has_text="Tokens")).to_contain_text("10.6K")
    await expect(tiles.filter(has_text="Cost")).to_contain_text("$4.00")
    await expect(tiles.filter(has_text="Answers")).to_contain_text("2")
    await expect(console.page.get_by_role("img", name="Cost over time")).to_be_visible()
    await console.page.get_by_role("combobox", name="Group by").focus()
    await keyboard.type("Model")
    table = console.page.get_by_role("table", name="Model")
    await expect(table.get_by_role("row")).to_have_count(3)
    await expect(console.row("window.hacked").first).to_contain_text("88%")
    await expect(console.page.locator(".legend li")).to_have_count(2)
    await table.get_by_role("row").filter(has_text=FORMULA).focus()
    await keyboard.press("Enter")
    await expect(console.page.get_by_text(f"Only what {FORMULA} used")).to_be_visible()
    await expect(tiles.filter(has_text="Tokens")).to_contain_text("600")
    assert "model=%3DHYPERLINK" in console.path
    assert "group=agent" in console.path
    # A reload shows the same.
    await console.page.reload()
    await expect(tiles.filter(has_text="Tokens")).to_contain_text("600")
    await console.button("Show all").press("Enter")
    await expect(tiles.filter(has_text="Tokens")).to_contain_text("10.6K")
    assert await hostile.find_harm(console.page, []) == []


async def test_the_figures_of_the_chart_are_a_table_and_a_file(
    console: Console, used: Client
) -> None:
    await console.sign_in(used)
    await console.open("/usage?period=24h&group=model&measure=total_tokens", title="Usage")
    await console.page.get_by_text("Figures as a table").click()
    figures = console.page.get_by_role("table", name="Figures as a table")
    await expect(figures.get_by_role("row")).to_have_count(25)
    await expect(figures.get_by_role("cell", name="10,000")).to_have_count(1)
    async with console.page.expect_download() as download:
        await console.button("Export as CSV").click()
    file = await download.value
    assert file.suggested_filename == "usage.csv"
    lines = read_lines(await file.path())
    assert len(lines) == 25
    # No spreadsheet takes a name for a formula.
    assert lines[0].endswith(f",'{FORMULA}")
    assert lines[-1].endswith(",10000,600") or lines[-2].endswith(",10000,600")


async def test_a_period_of_days_and_an_address_that_makes_no_sense(
    console: Console, used: Client
) -> None:
    await console.sign_in(used)
    await console.open("/usage?period=custom&from=2020-01-01&to=2020-01-31", title="Usage")
    await expect(console.page.get_by_text("Nothing was used in this period")).to_be_visible()
    await console.open("/usage?period=x&group=constructor&measure=y&from=z", title="Usage")
    await expect(console.page.locator(".tile").filter(has_text="Cost")).to_contain_text("$4.00")


async def test_limits_show_what_remains(console: Console, talk: Talker) -> None:
    name = hostile.HTML[:100]
    await create_embed_key(
        talk.client, talk.agent_id, name, max_messages_per_day=20, max_tokens_per_day=None
    )
    await console.sign_in(talk.client)
    await console.open("/usage?tab=limits", title="Usage")
    await expect(console.page.get_by_text("Rows of data tables")).to_be_visible()
    budget = console.page.locator(".meter").filter(has_text="messages")
    await expect(budget).to_contain_text("0 of 20")
    await expect(budget).to_contain_text("window.hacked")
    assert await hostile.find_harm(console.page, []) == []


async def test_users_who_may_not_see_usage_have_no_such_screen(
    console: Console, world: World
) -> None:
    await console.sign_in(await world.user("viewer"))
    await console.open("/usage", title="This screen does not exist")
    await expect(console.page.get_by_role("link", name="Usage")).to_have_count(0)
