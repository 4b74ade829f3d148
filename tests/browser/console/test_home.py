"""The first screen of the console: health, what to do next, the week, what failed."""

from playwright.async_api import Locator, Request, expect

from app.services import Services
from tests.browser import hostile
from tests.browser.console.console import Console
from tests.browser.console.work_rows import add_dead_work
from tests.conversations.embed.factories import create_embed_key
from tests.scripted_agents import Talker
from tests.world import Client, World

MOST_REQUESTS = 12


def section(console: Console, title: str) -> Locator:
    heading = console.page.get_by_role("heading", name=title, exact=True)
    return console.page.locator("section").filter(has=heading)


async def test_a_new_administrator_sees_what_to_do_next_and_what_is_done(
    console: Console, talk: Talker
) -> None:
    admin = await talk.world.user("tenant_admin", talk.client.tenant_id)
    await console.sign_in(admin)
    await console.open(title="Home")
    steps = section(console, "What to do next").get_by_role("listitem")
    await expect(steps).to_have_count(5)
    # The scripted provider, its agent and the user who made it are there.
    for number, is_done in enumerate((True, True, False, False, True)):
        await expect(steps.nth(number).get_by_text("(done)")).to_have_count(int(is_done))
    await create_embed_key(talk.client, talk.agent_id)
    await console.page.reload()
    await expect(steps.nth(3).get_by_text("(done)")).to_have_count(1)
    await steps.nth(2).get_by_role("link", name="Add documents").press("Enter")
    await expect(console.heading).to_have_text("Knowledge")
    await console.open(title="Home")
    await console.button("Hide").press("Enter")
    await expect(steps).to_have_count(0)
    await console.page.reload()
    await expect(section(console, "Health")).to_contain_text("Database")
    await expect(steps).to_have_count(0)


async def test_nobody_is_asked_to_do_what_their_role_may_not(
    console: Console, world: World
) -> None:
    for role, count in (("agent_developer", 3), ("agent_user", 0), ("viewer", 0)):
        await console.page.context.clear_cookies()
        await console.sign_in(await world.user(role))
        await console.open(title="Home")
        await expect(section(console, "Health")).to_contain_text("Database")
        await expect(console.page.get_by_text("Nothing has failed")).to_be_visible()
        await expect(console.page.locator(".steps li")).to_have_count(count)
        await expect(console.page.locator(".tile").first).to_have_count(int(count > 0))


async def test_what_failed_leads_to_what_says_more(
    console: Console, admin: Client, services: Services
) -> None:
    await add_dead_work(services, admin.tenant_id, error=hostile.HTML)
    await console.sign_in(admin)
    await console.open(title="Home")
    failed = section(console, "What failed lately")
    await failed.get_by_role("link").press("Enter")
    await expect(console.heading).to_have_text("Settings")
    dialog = console.dialog("Run the action of a subscription")
    await expect(dialog).to_contain_text("window.hacked")
    assert await hostile.find_harm(console.page, []) == []


async def test_a_part_that_is_missing_is_named_with_what_to_do(
    console: Console, developer: Client
) -> None:
    parts = {
        "postgres": {"state": "ok"},
        "workers": {"state": "away", "detail": hostile.HTML},
        "local_model": {"state": "off"},
    }
    report = {"status": "degraded", "parts": parts, "sandbox": "none"}
    await console.page.route(
        "**/health/ready", lambda route: route.fulfill(status=503, json=report)
    )
    await console.sign_in(developer)
    await console.open(title="Home")
    health = section(console, "Health")
    await expect(health).to_contain_text("Something is missing")
    await expect(health.get_by_role("listitem").nth(1)).to_contain_text("parley worker")
    await expect(health).to_contain_text("neither bubblewrap nor Landlock")
    assert await hostile.find_harm(console.page, []) == []


async def test_it_asks_little_and_a_part_that_fails_leaves_the_others(
    console: Console, admin: Client
) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/api/" in request.url or "/users" in request.url or "/health" in request.url:
            asked.append(request.url)

    await console.page.route(
        "**/api/v1/usage/series?*", lambda route: route.fulfill(status=500, json={"error": {}})
    )
    await console.sign_in(admin)
    console.page.on("request", note)
    await console.open(title="Home")
    await expect(console.button("Try again")).to_have_count(1)
    await expect(section(console, "What to do next").get_by_role("listitem")).to_have_count(5)
    await expect(console.page.get_by_text("Nothing has failed")).to_be_visible()
    await expect(section(console, "Health")).to_contain_text("Database")
    console.page.remove_listener("request", note)
    assert len(asked) <= MOST_REQUESTS, asked
