"""The page of a trace, used by a person with a browser."""

import re
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pyotp
import pytest
from playwright.async_api import Page, expect

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.browser.chain import EVIL, ROWS, Chain, chain_of
from tests.server import Server
from tests.world import PASSWORD, Client, World


@pytest.fixture
async def chain(developer: Client, services: Services) -> Chain:
    return await chain_of(developer, services)


class Reader:
    """Somebody at the page, who notes what the browser asks for and complains of."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        page.set_default_timeout(10_000)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda line: self.complaints.append(f"{line.type}: {line.text}"))
        page.on("request", lambda request: self.asked.append(request.url))

    async def open(self, chain_id: str) -> None:
        await self.page.goto(f"{self.url}/trace/{chain_id}")

    async def sign_in(self, email: str, password: str = PASSWORD) -> None:
        await self.page.get_by_label("E-mail").fill(email)
        await self.page.get_by_label("Password").fill(password)
        await self.page.get_by_role("button", name="Sign in").click()

    async def paste(self, token: str) -> None:
        await self.page.get_by_label("Access token").fill(token)
        await self.page.get_by_role("button", name="Use it").click()

    async def reads(self, text: str | re.Pattern[str]) -> None:
        await expect(self.page.get_by_role("status")).to_contain_text(text)

    async def rows(self) -> list[tuple[str, int]]:
        told = []
        for row in await self.page.get_by_role("row").all():
            label = row.get_by_role("rowheader")
            depth = re.search(r"depth-(\d)", await label.get_attribute("class") or "")
            kind, name = await label.locator("span").all_text_contents()
            told.append((f"{kind} {name}", int(depth.group(1)) if depth else -1))
        return told


@pytest.fixture
def reader(page: Page, server: Server) -> Reader:
    return Reader(page, server.url)


SHOWN = "4 events and 4 spans in 3.5 s"


# Getting in


async def test_e_mail_and_password_show_the_trace_as_a_tree(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    await reader.open(chain.id)
    await expect(reader.page.get_by_text(chain.id)).to_be_visible()
    await reader.sign_in(developer.email)
    await reader.reads(SHOWN)
    assert await reader.rows() == ROWS
    await expect(reader.page.get_by_label("Password")).to_be_hidden()


async def test_a_pasted_token_shows_it_with_and_without_its_scheme(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    for text in (developer.token or "", f"  Bearer {developer.token}\n"):
        await reader.open(chain.id)
        await reader.paste(text)
        await reader.reads(SHOWN)
        await reader.page.get_by_role("button", name="Forget my token").click()


async def _with_mfa(caller: Client) -> pyotp.TOTP:
    answer = await caller.post("/api/v1/mfa/setup")
    totp = pyotp.TOTP(answer.json()["secret"])
    enabled = await caller.post("/api/v1/mfa/enable", {"code": totp.now()})
    assert enabled.status_code == 200, enabled.text
    return totp


async def test_a_second_factor_is_asked_for(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    totp = await _with_mfa(developer)
    page = reader.page
    await reader.open(chain.id)
    await expect(page.get_by_label("Code of your authenticator")).to_be_hidden()
    await reader.sign_in(developer.email)
    code = page.get_by_label("Code of your authenticator")
    await expect(code).to_be_focused()
    await expect(page.get_by_role("status")).not_to_contain_text("POST")
    await code.fill("000000")
    await page.get_by_role("button", name="Sign in").click()
    await reader.reads("code")
    await expect(page.get_by_role("status")).to_have_class("bad")
    # Each code is used once, and the one after it is good already.
    await code.fill(totp.at(int(clock.epoch()), 1))
    await page.get_by_role("button", name="Sign in").click()
    await reader.reads(SHOWN)


async def test_another_person_may_sign_in_where_a_code_was_asked_for(
    reader: Reader, world: World, developer: Client, chain: Chain
) -> None:
    other = await world.user("agent_developer", developer.tenant_id)
    await _with_mfa(other)
    await reader.open(chain.id)
    await reader.sign_in(other.email)
    await expect(reader.page.get_by_label("Code of your authenticator")).to_be_visible()
    await reader.sign_in(developer.email)
    await reader.reads(SHOWN)


# What does not work says so


async def test_a_wrong_password_says_so(reader: Reader, developer: Client, chain: Chain) -> None:
    await reader.open(chain.id)
    await reader.sign_in(developer.email, "Wrong7Password")
    await reader.reads(re.compile("e-mail|password", re.IGNORECASE))
    await expect(reader.page.get_by_role("status")).to_have_class("bad")
    await expect(reader.page.get_by_label("E-mail")).to_be_visible()
    await reader.sign_in(developer.email)
    await reader.reads(SHOWN)


async def test_an_expired_token_says_so_and_is_forgotten(
    reader: Reader, world: World, chain: Chain
) -> None:
    with clock.frozen(clock.now() - timedelta(hours=1)):
        late = await world.user("agent_developer", chain.tenant_id)
    await reader.open(chain.id)
    await reader.paste(late.token or "")
    await reader.reads("expired")
    await expect(reader.page.get_by_label("Access token")).to_be_visible()
    assert await reader.page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("token", ["nonsense", "a b c", "…", "ключ 🎉", "x" * 9000])
async def test_what_is_no_token_says_so(reader: Reader, chain: Chain, token: str) -> None:
    await reader.open(chain.id)
    await reader.paste(token)
    await reader.reads(re.compile("token", re.IGNORECASE))
    await expect(reader.page.get_by_role("status")).to_have_class("bad")
    await expect(reader.page.get_by_label("Access token")).to_be_visible()


async def test_an_unknown_correlation_id_says_so(reader: Reader, developer: Client) -> None:
    await reader.open("cor_nothing")
    await reader.paste(developer.token or "")
    await reader.reads("Nothing is known of the correlation id cor_nothing")
    assert await reader.rows() == []


async def test_another_tenants_trace_is_unknown(
    reader: Reader, admin: Client, chain: Chain
) -> None:
    await reader.open(chain.id)
    await reader.paste(admin.token or "")
    await reader.reads(f"Nothing is known of the correlation id {chain.id}")


async def test_who_may_not_read_events_is_told(reader: Reader, world: World, chain: Chain) -> None:
    viewer = await world.user("viewer", chain.tenant_id)
    await reader.open(chain.id)
    await reader.paste(viewer.token or "")
    await reader.reads("events:read")


@pytest.mark.parametrize("odd", ["%E0%A4%A", "%", "%25", "<b>x", "a+b:c=d"])
async def test_any_address_is_shown_as_text(reader: Reader, developer: Client, odd: str) -> None:
    await reader.open(odd)
    await reader.paste(developer.token or "")
    await reader.reads(re.compile("Nothing is known of|nothing at this path"))
    await expect(reader.page.locator("#about b")).to_have_count(0)


# What is shown


async def test_markup_in_names_is_text(reader: Reader, developer: Client, chain: Chain) -> None:
    await reader.open(chain.id)
    await reader.paste(developer.token or "")
    await reader.reads(SHOWN)
    await reader.page.get_by_role("row", name=EVIL).click()
    await expect(reader.page.locator("#details h2")).to_have_text(EVIL)
    await reader.page.get_by_role("row", name="event agent.chat.message").click()
    await expect(reader.page.locator("#details pre")).to_contain_text(
        msgspec.json.encode(EVIL).decode()
    )
    await expect(reader.page.locator("main img, main script")).to_have_count(0)
    assert await reader.page.title() == "Trace"


async def test_a_row_tells_its_state_and_its_time(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    await reader.open(chain.id)
    await reader.paste(developer.token or "")
    await reader.reads(SHOWN)
    row = reader.page.get_by_role("row", name=EVIL)
    await expect(row.locator(".state")).to_have_text("failed")
    await expect(row.locator(".time")).to_have_text("+1.4 s, 900 ms")
    boxes = [await one.bounding_box() for one in await reader.page.locator("rect").all()]
    assert all(box and box["width"] > 0 for box in boxes)


async def test_looking_again_shows_what_came_since(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    await reader.open(chain.id)
    await reader.paste(developer.token or "")
    await reader.reads(SHOWN)
    await chain.event("agent.deleted", 3.2, "evt_unknown")
    await reader.page.get_by_role("button", name="Look again").click()
    await reader.reads("5 events and 4 spans in 3.5 s")
    assert ("event agent.deleted", 0) in await reader.rows()


async def test_a_long_chain_is_shown_whole(
    reader: Reader, developer: Client, services: Services
) -> None:
    chain = Chain(new_id("cor"), developer.tenant_id, services)
    parent = None
    for number in range(12):
        parent = await chain.event(f"step.{number}", number, parent)
    await reader.open(chain.id)
    await reader.paste(developer.token or "")
    await reader.reads("12 events and 1 span in 11 s")
    depths = [depth for _, depth in await reader.rows()]
    assert depths == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8]


# The token and the browser


async def test_the_token_is_never_in_an_address_and_can_be_forgotten(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    token = developer.token or ""
    await reader.open(chain.id)
    await reader.paste(token)
    await reader.reads(SHOWN)
    assert reader.page.url == f"{reader.url}/trace/{chain.id}"
    assert not [url for url in reader.asked if token in url]
    await reader.page.reload()
    await reader.reads(SHOWN)
    await reader.page.get_by_role("row", name="job mail.send").click()
    await reader.page.get_by_role("button", name="Forget my token").click()
    await expect(reader.page.get_by_label("Access token")).to_be_visible()
    await expect(reader.page.get_by_label("Access token")).to_have_value("")
    await expect(reader.page.get_by_role("row")).to_have_count(0)
    await expect(reader.page.locator("#details")).to_be_hidden()
    assert token not in await reader.page.content()
    stored = "JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie])"
    assert await reader.page.evaluate(stored) == '[{},{},""]'
    await reader.page.reload()
    await expect(reader.page.get_by_label("E-mail")).to_be_visible()


async def test_nothing_is_left_of_a_trace_once_its_token_is_forgotten(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    await reader.open(chain.id)
    await reader.paste(developer.token or "")
    await reader.reads(SHOWN)
    await reader.page.get_by_role("row", name="event agent.chat.message").click()
    await reader.page.get_by_role("button", name="Forget my token").click()
    await expect(reader.page.get_by_label("E-mail")).to_be_visible()
    assert "agent.chat.message" not in await reader.page.content()


async def test_the_browser_has_nothing_to_complain_of_and_asks_nobody_else(
    reader: Reader, developer: Client, chain: Chain
) -> None:
    await reader.open(chain.id)
    await reader.sign_in(developer.email)
    await reader.reads(SHOWN)
    assert reader.complaints == []
    assert {url[: len(reader.url)] for url in reader.asked} == {reader.url}


async def _page(reader: Reader, chain_id: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(f"{reader.url}/trace/{chain_id}")


async def test_the_policy_of_the_page_lets_no_other_script_run(
    reader: Reader, chain: Chain
) -> None:
    answer = await _page(reader, chain.id)
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", answer.text)
    await reader.open(chain.id)
    await reader.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'hacked'";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", `<b onclick="document.title='hacked'">`);
            document.querySelector("main ~ b").click();
        }"""
    )
    assert await reader.page.title() == "Trace"
    assert any("Content Security Policy" in line for line in reader.complaints)


async def test_the_page_itself_holds_nothing_of_the_trace(reader: Reader, chain: Chain) -> None:
    one, other = [(await _page(reader, name)).text for name in (chain.id, "<x>")]
    assert one == other
    assert chain.id not in one


@pytest.mark.parametrize("width", [400, 1280])
async def test_nothing_stands_out_of_the_window(
    reader: Reader, developer: Client, chain: Chain, width: int
) -> None:
    await reader.page.set_viewport_size({"width": width, "height": 800})
    await reader.open(chain.id)
    wide: Any = "document.documentElement.scrollWidth"
    assert await reader.page.evaluate(wide) <= width
    await reader.paste(developer.token or "")
    await reader.reads(SHOWN)
    await reader.page.get_by_role("row", name=EVIL).click()
    assert await reader.page.evaluate(wide) <= width
