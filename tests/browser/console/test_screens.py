"""Every screen of the console with hostile texts, in both themes, on a desktop and on a phone."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from app.services import Services
from tests.browser import hostile, looks, screenshots
from tests.browser.console.console import Console
from tests.browser.console.screens import OPEN_SCREENS, SCREENS, Screen
from tests.browser.console.shop import Shop, furnish
from tests.failing_cases import FailingCases
from tests.lengths import IS_LONG
from tests.model_server import ModelServer
from tests.world import Client, World
from workers.main import WorkerProcess

_AREAS = Path(__file__).parents[3] / "app/web/console/src/areas"
# All that screens read, and not the session.
_READS = re.compile(r"/(api/v1|v1|users|health)[/?]|/users$")
_FOLLOW = """path => {
    const link = document.createElement("a");
    link.href = path;
    document.body.append(link);
    link.click();
    link.remove();
}"""
_TABS = "[...document.querySelectorAll('[role=tab]')].map(({ id }) => id.slice(4))"
_PARTS = """() => ({
    headings: document.querySelectorAll("h1").length,
    rails: document.querySelectorAll("nav[aria-label=Main]").length,
    hacked: Boolean(window.hacked),
})"""


_WHOLE = {"headings": 1, "rails": 1, "hacked": False}
LISTS = [screen for screen in SCREENS if screen.empty]


@pytest.fixture(scope="module")
async def shop(
    world: World,
    models: ModelServer,
    services: Services,
    reader: WorkerProcess,
    worker: WorkerProcess,
) -> Shop:
    return await furnish(world, models, services)


async def sign_in(console: Console, user: Client) -> None:
    """As somebody who looks at one tenant."""
    await console.sign_in(user)
    await console.open("/people/me", title="Your account")
    await console.page.evaluate("id => sessionStorage.setItem('tenant', id)", user.tenant_id)


async def follow(console: Console, path: str) -> None:
    """Goes to a screen without loading the page again."""
    await console.page.evaluate(_FOLLOW, f"/console{path}".removesuffix("/"))


async def wait_for(page: Page, text: str) -> None:
    """Waits until the screen has loaded."""
    await expect(page.locator("body").get_by_text(text).filter(visible=True).first).to_be_visible()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)


async def find_problems(page: Page, screen: Screen, tabs: set[str | None]) -> list[str]:
    # The frame around the screens is the same everywhere.
    part = "" if screen.path == "/" else "main"
    problems = await looks.find_problems(page, f"console-{screen.name}", 1280, 360, part=part)
    parts = await page.evaluate(_PARTS)
    if parts != _WHOLE:
        problems.append(f"{screen.name} has {parts}")
    problems += [f"tab {tab} has no row" for tab in await page.evaluate(_TABS) if tab not in tabs]
    return problems


async def test_every_screen_is_accessible_and_shows_hostile_texts_as_texts(
    console: Console, shop: Shop, subtests: FailingCases
) -> None:
    await sign_in(console, shop.owner)
    await console.open("/", title="Home")
    for screen in SCREENS:
        with subtests.test(screen.name):
            await follow(console, screen.path.format(**shop.ids))
            await wait_for(console.page, screen.shows)
            base = screen.path.partition("?")[0]
            tabs = {other.tab for other in SCREENS if other.path.partition("?")[0] == base}
            assert await find_problems(console.page, screen, tabs) == []
            await console.widen()


async def look_at_lists(
    console: Console, subtests: FailingCases, look: str, shows: str = ""
) -> None:
    """In one width and theme; in long runs, and for pictures, in all of them."""
    page = console.page
    all_looks = IS_LONG or screenshots.are_wanted()
    widths = (1280, 360) if all_looks else (1280,)
    schemes = looks.SCHEMES if all_looks else looks.SCHEMES[1:]
    await console.open("/missing", title="This screen does not exist")
    for screen in LISTS:
        with subtests.test(screen.name):
            await follow(console, screen.path)
            # The screen before stays while this one is loaded.
            title = (re.sub(r"[/?].*", "", screen.path[1:]) or "home").capitalize()
            await expect(console.heading).to_have_text(title)
            await expect(page.get_by_text(shows or screen.empty).first).to_be_attached()
            if look != "loading":
                await expect(page.locator("[aria-busy=true]")).to_have_count(0)
            name = f"console-{screen.name}-{look}"
            assert (
                await looks.find_problems(page, name, *widths, schemes=schemes, part="main") == []
            )
            assert await page.evaluate(_PARTS) == _WHOLE


async def test_lists_of_a_new_tenant_say_what_to_do(
    console: Console, super_admin: Client, subtests: FailingCases
) -> None:
    await sign_in(console, super_admin)
    await look_at_lists(console, subtests, "empty")


async def test_lists_that_fail_say_what_to_do_and_show_the_request(
    console: Console, super_admin: Client, subtests: FailingCases
) -> None:
    await sign_in(console, super_admin)
    await console.page.route(_READS, fail)
    await look_at_lists(console, subtests, "failed", "req_1")


async def fail(route: Route) -> None:
    error = {"code": "internal_error", "message": hostile.HTML, "details": None}
    headers = {"x-request-id": "req_1"}
    await route.fulfill(status=500, json={"error": error}, headers=headers)


async def test_lists_have_a_skeleton_while_they_load(
    console: Console, super_admin: Client, subtests: FailingCases
) -> None:
    await sign_in(console, super_admin)
    await console.page.route(_READS, lambda _: None)
    await look_at_lists(console, subtests, "loading", "Loading …")


def test_every_screen_of_the_registries_has_a_row() -> None:
    paths = {f"/{screen.path.split('?')[0].split('/')[1]}" for screen in SCREENS}
    assert set(re.findall(r'^    path: "(.+)"', read_area("screens.ts"), re.MULTILINE)) <= paths
    opened = {screen.path for screen in OPEN_SCREENS}
    assert set(re.findall(r'^  "(/.+)":', read_area("open_screens.ts"), re.MULTILINE)) == opened


def read_area(name: str) -> str:
    return (_AREAS / name).read_text(encoding="utf-8")
