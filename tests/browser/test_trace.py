"""The trace page, used in a browser."""

import re
from datetime import timedelta

import httpx
import msgspec
import pyotp
import pytest
from playwright.async_api import Page, expect

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.browser import looks
from tests.browser.chain import MARKUP, ROWS, Chain, create_chain
from tests.http_clients import open_client
from tests.server import Server
from tests.world import PASSWORD, Client, World

_READ_ROWS = """rows => rows.map((row) => {
    const label = row.querySelector("[role=rowheader]");
    const depth = label.className.match(/depth-(\\d)/);
    const texts = [...label.querySelectorAll("span")].map((span) => span.textContent);
    return [texts.join(" "), depth ? Number(depth[1]) : -1];
})"""
SUMMARY = "4 events and 4 spans in 3.5 s"


@pytest.fixture
async def chain(developer: Client, services: Services) -> Chain:
    return await create_chain(developer, services)


class TracePage:
    """The trace page in a browser, with its requests and console lines."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        page.set_default_timeout(10_000)
        self.console_lines: list[str] = []
        self.requested_urls: list[str] = []
        page.on("console", lambda line: self.console_lines.append(f"{line.type}: {line.text}"))
        page.on("request", lambda request: self.requested_urls.append(request.url))

    async def open(self, chain_id: str) -> None:
        await self.page.goto(f"{self.url}/trace/{chain_id}")

    async def sign_in(self, email: str, password: str = PASSWORD) -> None:
        await self.page.get_by_label("E-mail").fill(email)
        await self.page.get_by_label("Password").fill(password)
        await self.page.get_by_role("button", name="Sign in").click()

    async def use_token(self, token: str) -> None:
        await self.page.get_by_label("Access token").fill(token)
        await self.page.get_by_role("button", name="Use it").click()

    async def show(self, chain: Chain, caller: Client) -> None:
        """Opens the trace of the complete chain with the caller's token."""
        await self.open(chain.id)
        await self.use_token(caller.token or "")
        await self.expect_status(SUMMARY)

    async def expect_status(self, text: str | re.Pattern[str]) -> None:
        await expect(self.page.get_by_role("status")).to_contain_text(text)

    async def clear_status(self) -> None:
        """Removes what the page says of the token before."""
        script = "element => { element.textContent = element.className = '' }"
        await self.page.get_by_role("status").evaluate(script)

    async def list_rows(self) -> list[tuple[str, int]]:
        """Returns the kind and name of each row, and how deep it stands, or -1."""
        rows: list[tuple[str, int]] = [
            (name, depth)
            for name, depth in await self.page.get_by_role("row").evaluate_all(_READ_ROWS)
        ]
        return rows


@pytest.fixture
def trace_page(page: Page, server: Server) -> TracePage:
    return TracePage(page, server.url)


async def test_a_trace_in_which_something_runs_is_followed(
    trace_page: TracePage, developer: Client, chain: Chain
) -> None:
    await chain.set_tool_status("running")
    await trace_page.show(chain, developer)
    row = trace_page.page.get_by_role("row", name=MARKUP)
    await expect(row).to_contain_text("running")
    await row.click()
    await chain.set_tool_status("success")
    await expect(row).to_contain_text("success")
    # The row stays open and keeps the focus.
    await expect(row).to_be_focused()
    await expect(row).to_have_attribute("aria-current", "true")
    await expect(trace_page.page.locator("#details")).to_contain_text('"status": "success"')


async def test_a_failed_look_keeps_the_trace_and_is_tried_again(
    trace_page: TracePage, developer: Client, chain: Chain
) -> None:
    await chain.set_tool_status("running")
    await trace_page.show(chain, developer)
    row, path = trace_page.page.get_by_role("row", name=MARKUP), "**/event-log/trace/**"
    await row.click()
    await trace_page.page.route(path, lambda route: route.abort())
    await expect(trace_page.page.get_by_role("status")).to_have_class("bad")
    await expect(row).to_contain_text("running")
    await expect(trace_page.page.locator("#details")).to_be_visible()
    await chain.set_tool_status("success")
    await trace_page.page.unroute(path)
    await expect(row).to_contain_text("success")
    await trace_page.expect_status(SUMMARY)


# Sign-in


async def test_a_sign_in_shows_the_trace_as_a_tree_and_requests_only_its_own_server(
    trace_page: TracePage, developer: Client, chain: Chain, subtests: pytest.Subtests
) -> None:
    page = trace_page.page
    await trace_page.open(chain.id)
    await expect(page.get_by_text(chain.id)).to_be_visible()
    await trace_page.sign_in(developer.email)
    await trace_page.expect_status(SUMMARY)
    assert await trace_page.list_rows() == ROWS
    await expect(page.get_by_label("Password")).to_be_hidden()
    with subtests.test("a row shows its state and its time"):
        await _check_row(page)
    with subtests.test("markup in names is text"):
        await _check_markup(page)
    with subtests.test("looking again shows new events"):
        await chain.event("agent.deleted", 3.2, "evt_unknown")
        await page.get_by_role("button", name="Look again").click()
        await trace_page.expect_status("5 events and 4 spans in 3.5 s")
        assert ("event agent.deleted", 0) in await trace_page.list_rows()
    assert trace_page.console_lines == []
    assert {url[: len(trace_page.url)] for url in trace_page.requested_urls} == {trace_page.url}


async def _check_row(page: Page) -> None:
    row = page.get_by_role("row", name=MARKUP)
    await expect(row.locator(".state")).to_have_text("failed")
    await expect(row.locator(".time")).to_have_text("+1.4 s, 900 ms")
    widths = "rects => rects.map((rect) => rect.getBoundingClientRect().width)"
    assert min(await page.locator("rect").evaluate_all(widths)) > 0


async def _check_markup(page: Page) -> None:
    await page.get_by_role("row", name=MARKUP).click()
    await expect(page.locator("#details h2")).to_have_text(MARKUP)
    await page.get_by_role("row", name="event agent.chat.message").click()
    await expect(page.locator("#details pre").first).to_contain_text(
        msgspec.json.encode(MARKUP).decode()
    )
    await expect(page.locator("main img, main script")).to_have_count(0)
    assert await page.title() == "Trace"


async def _enable_mfa(caller: Client) -> pyotp.TOTP:
    answer = await caller.post("/api/v1/mfa/setup")
    totp = pyotp.TOTP(answer.json()["secret"])
    enabled = await caller.post("/api/v1/mfa/enable", {"code": totp.now()})
    assert enabled.status_code == 200, enabled.text
    return totp


async def test_a_second_factor_is_asked_for(
    trace_page: TracePage, developer: Client, chain: Chain
) -> None:
    totp = await _enable_mfa(developer)
    page = trace_page.page
    await trace_page.open(chain.id)
    await expect(page.get_by_label("Code of your authenticator")).to_be_hidden()
    await trace_page.sign_in(developer.email)
    code = page.get_by_label("Code of your authenticator")
    await expect(code).to_be_focused()
    await expect(page.get_by_role("status")).not_to_contain_text("POST")
    await code.fill("000000")
    await page.get_by_role("button", name="Sign in").click()
    await trace_page.expect_status("code")
    await expect(page.get_by_role("status")).to_have_class("bad")
    # A code works once; the code of the next step is already valid.
    await code.fill(totp.at(int(clock.epoch()), 1))
    await page.get_by_role("button", name="Sign in").click()
    await trace_page.expect_status(SUMMARY)


async def test_another_sign_in_works_after_a_wrong_password_and_when_a_code_is_required(
    trace_page: TracePage, world: World, developer: Client, chain: Chain
) -> None:
    status = trace_page.page.get_by_role("status")
    await trace_page.open(chain.id)
    await trace_page.sign_in(developer.email, "Wrong7Password")
    await trace_page.expect_status(re.compile("e-mail|password", re.IGNORECASE))
    await expect(status).to_have_class("bad")
    await expect(trace_page.page.get_by_label("E-mail")).to_be_visible()
    other = await world.user("agent_developer", developer.tenant_id)
    await _enable_mfa(other)
    await trace_page.sign_in(other.email)
    await expect(trace_page.page.get_by_label("Code of your authenticator")).to_be_visible()
    await trace_page.sign_in(developer.email)
    await trace_page.expect_status(SUMMARY)


# Tokens


async def test_a_token_that_shows_nothing_says_why_and_is_asked_for_again(
    trace_page: TracePage,
    world: World,
    developer: Client,
    chain: Chain,
    subtests: pytest.Subtests,
) -> None:
    page, status = trace_page.page, trace_page.page.get_by_role("status")
    with clock.frozen(clock.now() - timedelta(hours=1)):
        expired = await world.user("agent_developer", chain.tenant_id)
    await trace_page.open(chain.id)
    texts = ("nonsense", "a b c", "…", "ключ 🎉", "x" * 9000)
    patterns = dict.fromkeys(texts, "token") | {expired.token or "": "expired"}
    for token, pattern in patterns.items():
        with subtests.test(token=token[:20]):
            await trace_page.clear_status()
            await trace_page.use_token(token)
            await trace_page.expect_status(re.compile(pattern, re.IGNORECASE))
            await expect(status).to_have_class("bad")
            await expect(page.get_by_label("Access token")).to_be_visible()
            assert await page.evaluate("sessionStorage.length") == 0
    with subtests.test("a token works with its scheme"):
        await trace_page.use_token(f"  Bearer {developer.token}\n")
        await trace_page.expect_status(SUMMARY)


async def test_a_trace_that_the_caller_may_not_see_is_not_shown(
    trace_page: TracePage,
    world: World,
    admin: Client,
    chain: Chain,
    subtests: pytest.Subtests,
) -> None:
    viewer = await world.user("viewer", chain.tenant_id)
    await trace_page.open(chain.id)
    for caller, expected in (
        (admin, f"There is no trace with the correlation id {chain.id}"),
        (viewer, "events:read"),
    ):
        with subtests.test(expected):
            await trace_page.clear_status()
            await trace_page.use_token(caller.token or "")
            await trace_page.expect_status(expected)
            assert await trace_page.list_rows() == []
            await trace_page.page.get_by_role("button", name="Forget my token").click()


async def test_any_correlation_id_is_shown_as_text(
    trace_page: TracePage, developer: Client
) -> None:
    await trace_page.open("cor_nothing")
    await trace_page.use_token(developer.token or "")
    await trace_page.expect_status("There is no trace with the correlation id cor_nothing")
    assert await trace_page.list_rows() == []
    for chain_id in ("%E0%A4%A", "%", "%25", "<b>x", "a+b:c=d"):
        await trace_page.open(chain_id)
        await trace_page.expect_status(re.compile("There is no trace|nothing at this path"))
        await expect(trace_page.page.locator("#about b")).to_have_count(0)


async def test_a_long_chain_is_shown_completely(
    trace_page: TracePage, developer: Client, services: Services
) -> None:
    chain = Chain(new_id("cor"), developer.tenant_id, services)
    parent = None
    for number in range(12):
        parent = await chain.event(f"step.{number}", number, parent)
    await trace_page.open(chain.id)
    await trace_page.use_token(developer.token or "")
    await trace_page.expect_status("12 events and 1 span in 11 s")
    depths = [depth for _, depth in await trace_page.list_rows()]
    assert depths == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8]


async def test_the_token_is_in_no_address_and_is_removed_together_with_the_trace(
    trace_page: TracePage, developer: Client, chain: Chain
) -> None:
    token = developer.token or ""
    await trace_page.show(chain, developer)
    assert trace_page.page.url == f"{trace_page.url}/trace/{chain.id}"
    assert not [url for url in trace_page.requested_urls if token in url]
    await trace_page.page.reload()
    await trace_page.expect_status(SUMMARY)
    await trace_page.page.get_by_role("row", name="event agent.chat.message").click()
    await trace_page.page.get_by_role("button", name="Forget my token").click()
    await expect(trace_page.page.get_by_label("Access token")).to_be_visible()
    await expect(trace_page.page.get_by_label("Access token")).to_have_value("")
    await expect(trace_page.page.get_by_role("row")).to_have_count(0)
    await expect(trace_page.page.locator("#details")).to_be_hidden()
    content = await trace_page.page.content()
    assert token not in content
    assert "agent.chat.message" not in content
    stored = "JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie])"
    assert await trace_page.page.evaluate(stored) == '[{},{},""]'
    await trace_page.page.reload()
    await expect(trace_page.page.get_by_label("E-mail")).to_be_visible()


async def _fetch_page(trace_page: TracePage, chain_id: str) -> httpx.Response:
    async with open_client() as client:
        return await client.get(f"{trace_page.url}/trace/{chain_id}")


async def test_the_page_contains_nothing_of_the_trace_and_its_policy_blocks_other_scripts(
    trace_page: TracePage, chain: Chain
) -> None:
    answer, other_answer = [await _fetch_page(trace_page, name) for name in (chain.id, "<x>")]
    assert answer.text == other_answer.text
    assert chain.id not in answer.text
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", answer.text)
    await trace_page.open(chain.id)
    await trace_page.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'hacked'";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", `<b onclick="document.title='hacked'">`);
            document.querySelector("main ~ b").click();
        }"""
    )
    assert await trace_page.page.title() == "Trace"
    assert any("Content Security Policy" in line for line in trace_page.console_lines)


async def test_the_page_is_accessible_in_every_theme_and_width(
    trace_page: TracePage, developer: Client, chain: Chain
) -> None:
    await trace_page.page.set_viewport_size({"width": 400, "height": 800})
    await trace_page.open(chain.id)
    assert await trace_page.page.evaluate("document.documentElement.scrollWidth") <= 400
    await trace_page.use_token(developer.token or "")
    await trace_page.expect_status(SUMMARY)
    await trace_page.page.get_by_role("row", name=MARKUP).click()
    assert await looks.find_problems(trace_page.page, "trace", 400, 1280) == []
