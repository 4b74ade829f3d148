"""The pages that mails link to, used in a browser, where the console is not built."""

import re
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import Page, Route, expect

from app.services import Services
from app.web import console_page
from tests.browser import looks
from tests.browser.account_pages import (
    NEW_PASSWORD,
    expect_page,
    fill_names,
    find_mail_link,
    invite,
    log_in,
    read_tenant_title,
)
from tests.database import run_sql
from tests.server import Server
from tests.world import Client, World

_PAGES = re.compile(r"/(register|verify-email|confirm-recipient|forgot-password|reset-password)\b")


@pytest.fixture(autouse=True)
async def plain_pages(
    page: Page, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """The server has the console, so its pages come from the application of this process, which
    does not find it.
    """
    monkeypatch.setattr(console_page, "load_manifest", lambda: None)

    async def answer(route: Route) -> None:
        if route.request.resource_type != "document":
            await route.fallback()
            return
        parts = urlsplit(route.request.url)
        answer = await anonymous.get(f"{parts.path}?{parts.query}")
        headers = {"content-security-policy": answer.headers["content-security-policy"]}
        await route.fulfill(
            status=answer.status_code, headers=headers, content_type="text/html", body=answer.text
        )

    await page.route(_PAGES, answer)
    yield
    await page.unroute(_PAGES)


@pytest.fixture
def email(admin: Client) -> str:
    return f"invited.{admin.user_id[-8:]}@example.com"


# Joining


async def test_an_invited_user_joins_is_signed_in_and_led_on(
    page: Page, server: Server, services: Services, admin: Client, email: str
) -> None:
    await invite(admin, email)
    link = await find_mail_link(services, email)
    await page.goto(f"{server.url}{link}&next=/trace/cor_1")
    await expect_page(page, await read_tenant_title(services, admin), "Test User invites you")
    field = page.get_by_label("E-mail")
    await expect(field).to_have_value(email)
    await expect(field).not_to_be_editable()
    await expect(field).to_have_attribute("autocomplete", "username")
    await fill_names(page)
    await page.get_by_role("button", name="Join").click()
    await page.wait_for_url(f"{server.url}/trace/cor_1")
    # The page reads the trace with the token that joining has left.
    await expect(page.get_by_role("status")).not_to_be_empty()
    token = await page.evaluate("sessionStorage.getItem('parley-token')")
    async with httpx.AsyncClient(base_url=server.url) as client:
        me = await client.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    assert (me.json()["email"], me.json()["role"]) == (email, "viewer")


async def test_whoever_has_joined_is_led_to_no_other_site(
    page: Page, server: Server, services: Services, admin: Client, email: str
) -> None:
    await invite(admin, email)
    link = await find_mail_link(services, email)
    await page.goto(f"{server.url}{link}&next=//example.com/")
    await fill_names(page)
    await page.get_by_role("button", name="Join").click()
    await page.wait_for_url(f"{server.url}/docs")


async def test_a_link_that_no_longer_invites_says_so_before_anything_is_typed(
    page: Page, server: Server, services: Services, world: World
) -> None:
    async def join(_admin: Client, _id: str) -> None:
        await fill_names(page)
        await page.get_by_role("button", name="Join").click()
        await page.wait_for_url(f"{server.url}/docs")

    async def expire(_admin: Client, invitation_id: str) -> None:
        sql = "UPDATE invitations SET expires_at = now() WHERE id = $1 RETURNING id"
        await run_sql(services, sql, invitation_id)

    async def supersede(admin: Client, _id: str) -> None:
        await invite(admin, f"ended.{admin.user_id[-8:]}@example.com")

    async def revoke(admin: Client, invitation_id: str) -> None:
        await admin.post(f"/users/invitations/{invitation_id}/revoke")

    for end, title, text in (
        (join, "You have joined already", "Sign in as ended."),
        (expire, "This invitation has expired", "Ask Test User for a new one"),
        (supersede, "There is a newer invitation", "Open the link in the newest mail to ended."),
        (revoke, "This invitation was withdrawn", "Ask Test User for a new one"),
    ):
        admin = await world.user("tenant_admin")
        address = f"ended.{admin.user_id[-8:]}@example.com"
        invitation_id = await invite(admin, address)
        link = server.url + await find_mail_link(services, address)
        await page.goto(link)
        await expect(page.get_by_role("button", name="Join")).to_be_visible()
        await end(admin, invitation_id)
        await page.goto(link)
        await expect_page(page, title, text)
        await expect(page.get_by_role("textbox")).to_have_count(0)


async def test_the_rules_of_passwords_are_shown_while_one_is_typed(
    page: Page, server: Server, services: Services, admin: Client, email: str
) -> None:
    await invite(admin, email)
    await page.goto(server.url + await find_mail_link(services, email))
    field = page.get_by_label("Password", exact=True)
    await expect(field).to_have_accessible_description(re.compile("at least 8 characters"))
    await field.fill("Battery")
    rules = page.locator(".rules .met")
    await expect(rules).to_have_text(["an uppercase letter", "a lowercase letter"])
    await page.get_by_role("button", name="Show the password").click()
    await expect(field).to_have_attribute("type", "text")
    await field.fill(NEW_PASSWORD)
    await expect(rules).to_have_count(4)
    await page.get_by_role("button", name="Hide the password").click()
    await expect(field).to_have_attribute("type", "password")
    await expect(field).to_have_attribute("autocomplete", "new-password")


async def test_a_look_up_that_fails_is_tried_again(
    page: Page, server: Server, services: Services, admin: Client, email: str
) -> None:
    await invite(admin, email)
    await page.route("**/look-up", lambda route: route.abort())
    await page.goto(server.url + await find_mail_link(services, email))
    await expect(page.get_by_role("status")).to_contain_text("The server cannot be reached")
    await page.unroute("**/look-up")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_label("E-mail")).to_have_value(email)


# Links for accounts


async def test_a_user_resets_a_forgotten_password_after_a_weak_one_is_reported_at_its_field(
    page: Page, server: Server, services: Services, developer: Client, anonymous: Client
) -> None:
    await page.goto(f"{server.url}/forgot-password")
    await page.get_by_label("E-mail").fill(developer.email)
    await page.get_by_role("button", name="Send the mail").click()
    await expect(page.get_by_role("status")).to_contain_text("a mail is on its way")

    link = server.url + await find_mail_link(services, developer.email)
    await page.goto(link)
    await expect(page.get_by_label("E-mail")).to_have_value(developer.email)
    field = page.get_by_label("New password")
    change = page.get_by_role("button", name="Change my password")
    await field.fill("short")
    await change.click()
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description(
        re.compile("must have at least 8 characters")
    )

    await field.fill(NEW_PASSWORD)
    await change.click()
    await expect(page.get_by_role("status")).to_contain_text("The password is changed")
    # The token has left the address.
    assert page.url == f"{server.url}/reset-password"
    assert await log_in(anonymous, developer.email, NEW_PASSWORD) == 200

    await page.goto(link)
    await expect_page(page, "This link no longer works", "ask for another mail")
    await page.get_by_role("link", name="Get a mail").click()
    assert page.url == f"{server.url}/forgot-password"


async def test_an_invalid_link_says_so_at_once(page: Page, server: Server) -> None:
    for path in ("verify-email", "verify-email?token=unknown", "reset-password?token=unknown"):
        await page.goto(f"{server.url}/{path}")
        await expect_page(page, "This link is not valid", "copy the whole link")
        await expect(page.get_by_role("button")).to_have_count(0)
    await page.goto(f"{server.url}/register?token=unknown")
    await expect_page(page, "This invitation is not valid", "ask whoever invited you")


async def test_an_expired_link_says_so_at_once(
    page: Page, server: Server, services: Services, developer: Client, anonymous: Client
) -> None:
    await anonymous.post("/auth/forgot-password", {"email": developer.email})
    link = await find_mail_link(services, developer.email)
    sql = "UPDATE one_time_tokens SET expires_at = now() WHERE user_id = $1 RETURNING id"
    await run_sql(services, sql, developer.user_id)
    await page.goto(server.url + link)
    await expect_page(page, "This link has expired", "Ask for another mail")


async def test_a_new_user_verifies_their_address_by_a_click(
    page: Page, server: Server, services: Services, anonymous: Client
) -> None:
    body = {
        "email": f"newcomer.{anonymous.address}@example.com",
        "password": NEW_PASSWORD,
        "first_name": "New",
        "last_name": "Comer",
    }
    await anonymous.post("/auth/register", body)
    link = server.url + await find_mail_link(services, body["email"])
    await page.goto(link)
    await page.get_by_role("button", name="Verify my address").click()
    await expect(page.get_by_role("status")).to_have_text("The e-mail address is verified")
    await page.goto(link)
    await expect_page(page, "This link was used", "Your e-mail address is verified")


async def test_the_pages_are_accessible_in_every_theme_and_width(
    page: Page, server: Server, services: Services, admin: Client, email: str
) -> None:
    for name in ("register", "forgot-password"):
        await page.goto(f"{server.url}/{name}")
        assert await looks.find_problems(page, name, 360, 1280) == []
    await invite(admin, email)
    await page.goto(server.url + await find_mail_link(services, email))
    await page.get_by_label("Password", exact=True).fill("Battery")
    assert await looks.find_problems(page, "join", 360, 1280) == []
    await page.goto(f"{server.url}/register?token=unknown")
    await expect_page(page, "This invitation is not valid", "copy")
    assert await looks.find_problems(page, "join-invalid", 360, 1280) == []
