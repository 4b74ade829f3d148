"""The links of mails, which lead to screens of the console."""

import re

import pytest
from playwright.async_api import expect

from app.services import Services
from tests.browser.account_pages import (
    NEW_PASSWORD,
    expect_page,
    fill_names,
    find_mail_link,
    invite,
    log_in,
    read_tenant_title,
)
from tests.browser.console.console import Console
from tests.database import run_sql
from tests.server import Server
from tests.world import Client, World


@pytest.fixture
def email(admin: Client) -> str:
    return f"invited.{admin.user_id[-8:]}@example.com"


async def open_link(console: Console, services: Services, recipient: str) -> str:
    """Returns the address of the link."""
    link = console.url + await find_mail_link(services, recipient)
    await console.page.goto(link)
    return link


async def test_an_invited_user_joins_and_is_signed_in(
    console: Console, services: Services, admin: Client, email: str
) -> None:
    await invite(admin, email)
    await open_link(console, services, email)
    title = await read_tenant_title(services, admin)
    await expect_page(console.page, title, "Test User invites you")
    assert console.path.startswith("/register?token=")
    field = console.field("E-mail")
    await expect(field).to_have_value(email)
    await expect(field).not_to_be_editable()
    await expect(field).to_have_attribute("autocomplete", "username")
    password = console.field("Password")
    await password.fill("Battery")
    await expect(password).to_have_accessible_description(re.compile("at least 8 characters"))
    rules = console.page.locator(".rules .met")
    await expect(rules).to_have_text([re.compile("uppercase"), re.compile("lowercase")])
    await fill_names(console.page)
    await expect(rules).to_have_count(4)
    await console.button("Join").click()
    await expect(console.heading).to_have_text("Home")
    assert console.path == ""
    await console.page.reload()
    await console.widen()
    await expect(console.page.get_by_role("button", name=email)).to_be_visible()


async def test_people_who_join_are_led_to_pages_of_this_instance_alone(
    console: Console, services: Services, admin: Client, server: Server, email: str
) -> None:
    for target, url in (
        ("//example.com/", f"{server.url}/console"),
        ("/console/agents?status=draft", f"{server.url}/console/agents?status=draft"),
        ("/trace/cor_1", f"{server.url}/trace/cor_1"),
    ):
        await console.page.context.clear_cookies()
        recipient = f"{len(target)}.{email}"
        await invite(admin, recipient)
        link = await find_mail_link(services, recipient)
        await console.page.goto(f"{console.url}{link}&next={target}")
        await fill_names(console.page)
        await console.button("Join").click()
        await console.page.wait_for_url(url)
    # The page reads the trace with the token that joining has left.
    await expect(console.page.get_by_role("status")).not_to_be_empty()
    await expect(console.page.get_by_label("Password")).not_to_be_visible()


async def test_a_link_that_no_longer_invites_says_so_before_anything_is_typed(
    console: Console, services: Services, world: World
) -> None:
    for change, title, text in (
        ("used_at = now()", "You have joined already", "Sign in as ended."),
        ("expires_at = now()", "This invitation has expired", "Ask Test User for a new one"),
        ("withdrawn_as = 'superseded'", "There is a newer invitation", "the newest mail"),
        ("withdrawn_as = 'revoked'", "This invitation was withdrawn", "Ask Test User"),
    ):
        admin = await world.user("tenant_admin")
        address = f"ended.{admin.user_id[-8:]}@example.com"
        invitation_id = await invite(admin, address)
        sql = f"UPDATE invitations SET {change} WHERE id = $1 RETURNING id"
        await run_sql(services, sql, invitation_id)
        await open_link(console, services, address)
        await expect_page(console.page, title, text)
        await expect(console.page.get_by_role("textbox")).to_have_count(0)
    assert await console.find_problems_in_long_runs("console-join-ended") == []


async def test_a_look_up_that_fails_is_tried_again(
    console: Console, services: Services, admin: Client, email: str
) -> None:
    await invite(admin, email)
    await console.page.route("**/look-up", lambda route: route.abort())
    await open_link(console, services, email)
    await expect(console.page.get_by_role("alert")).to_contain_text("server cannot be reached")
    await console.page.unroute("**/look-up")
    await console.button("Try again").click()
    await expect(console.field("E-mail")).to_have_value(email)


async def test_a_user_resets_a_forgotten_password_with_the_keyboard(
    console: Console, services: Services, developer: Client, anonymous: Client
) -> None:
    keyboard = console.page.keyboard
    await console.open("/sign-in", title="Sign in")
    await console.page.get_by_role("link", name="Forgot your password?").press("Enter")
    await expect(console.field("E-mail")).to_be_focused()
    await keyboard.type(developer.email)
    await keyboard.press("Enter")
    await expect_page(console.page, "Look into your mailbox", "a mail is on its way")

    link = await open_link(console, services, developer.email)
    await expect(console.field("E-mail")).to_have_value(developer.email)
    field = console.field("New password")
    await field.focus()
    await keyboard.type("short")
    await keyboard.press("Enter")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description(re.compile("must have at least 8"))
    await expect(field).to_be_focused()
    await field.fill(NEW_PASSWORD)
    await keyboard.press("Enter")
    await expect_page(console.page, "The password is changed", "Sign in with the new password")
    # The token has left the address.
    assert console.path == "/reset-password"
    assert await log_in(anonymous, developer.email, NEW_PASSWORD) == 200

    await console.page.goto(link)
    await expect_page(console.page, "This link no longer works", "ask for another mail")
    await console.page.get_by_role("link", name="Get a mail").click()
    await expect(console.heading).to_have_text("Forgot your password?")


async def test_a_reset_ends_the_session_of_this_browser_too(
    console: Console, services: Services, developer: Client, anonymous: Client
) -> None:
    await anonymous.post("/auth/forgot-password", {"email": developer.email})
    await console.sign_in(developer)
    await open_link(console, services, developer.email)
    await console.field("New password").fill(NEW_PASSWORD)
    await console.button("Change my password").click()
    await console.page.get_by_role("link", name="Sign in").click()
    await expect(console.heading).to_have_text("Sign in")


async def test_an_invalid_link_says_so_at_once(console: Console) -> None:
    unknown = "%3Cimg%20src%3Dx%20onerror%3Dhacked%3D1%3E"
    for path in (
        "verify-email",
        f"verify-email?token={unknown}",
        f"reset-password?token={unknown}",
    ):
        await console.page.goto(f"{console.url}/{path}")
        await expect_page(console.page, "This link is not valid", "copy the whole link")
        await expect(console.page.get_by_role("button")).to_have_count(0)
    await console.page.goto(f"{console.url}/register?token=unknown")
    await expect_page(console.page, "This invitation is not valid", "ask whoever invited you")
    await console.page.goto(f"{console.url}/confirm-recipient?token=unknown")
    await console.button("Confirm my address").click()
    await expect(console.page.get_by_role("alert")).to_contain_text("This link")


async def test_an_expired_link_says_so_at_once(
    console: Console, services: Services, developer: Client, anonymous: Client
) -> None:
    await anonymous.post("/auth/forgot-password", {"email": developer.email})
    sql = "UPDATE one_time_tokens SET expires_at = now() WHERE user_id = $1 RETURNING id"
    await run_sql(services, sql, developer.user_id)
    await open_link(console, services, developer.email)
    await expect_page(console.page, "This link has expired", "Ask for another mail")


async def test_a_new_user_is_asked_to_verify_their_address_and_does_so_by_a_click(
    console: Console, services: Services, world: World
) -> None:
    user = await world.user(is_verified=False)
    await console.sign_in(user)
    await console.open(title="Home")
    banner = console.page.get_by_role("region", name="Verify your e-mail address")
    await expect(banner).to_contain_text(user.email)
    # What the role permits is shown once the address is verified.
    await expect(console.page.get_by_role("link", name="Agents", exact=True)).to_have_count(0)
    await banner.get_by_role("button", name="Send the mail again").click()
    await expect(banner).to_contain_text("A mail is on its way")
    assert await console.find_problems_in_long_runs("console-unverified") == []
    link = await open_link(console, services, user.email)
    await console.button("Verify my address").click()
    await expect_page(console.page, "Your address is verified", "everything")
    assert console.path == "/verify-email"
    await console.widen()
    await console.page.get_by_role("link", name="Go to the console").click()
    await expect(console.page.get_by_role("link", name="Agents", exact=True)).to_be_visible()
    await expect(banner).to_have_count(0)
    await console.page.goto(link)
    await expect_page(console.page, "This link was used", "Your e-mail address is verified")
