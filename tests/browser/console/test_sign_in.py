"""Signing in to the console, and what happens when a session ends."""

import pyotp
from playwright.async_api import expect

from tests.browser.console.console import Console
from tests.identity.accounts.mfa_users import create_mfa_user
from tests.world import PASSWORD, Client


async def fill_in(console: Console, email: str, password: str = PASSWORD) -> None:
    await console.field("E-mail").fill(email)
    await console.field("Password").fill(password)
    await console.button("Sign in").click()


async def test_a_visitor_signs_in_and_comes_to_the_screen_of_the_link(
    console: Console, developer: Client
) -> None:
    await console.open("/agents?status=draft", title="Sign in")
    assert console.path.startswith("/sign-in?next=")
    await fill_in(console, developer.email)
    await expect(console.heading).to_have_text("Agents")
    assert console.path == "/agents?status=draft"


async def test_a_wrong_password_is_named_and_what_was_typed_stays(
    console: Console, developer: Client
) -> None:
    await console.open("/sign-in", title="Sign in")
    await fill_in(console, developer.email, "Wrong7Horse")
    await expect(console.page.get_by_role("alert")).to_contain_text("password is wrong")
    await expect(console.field("E-mail")).to_have_value(developer.email)


async def test_a_link_to_sign_in_leads_nowhere_else(console: Console, developer: Client) -> None:
    for address in (
        "https://evil.example.net/docs",
        "//evil.example.net/docs",
        "/docs/../openapi.json",
        "/docs@evil.example.net",
        "/openapi.json",
    ):
        await console.page.context.clear_cookies()
        await console.open(f"/sign-in?next={address}", title="Sign in")
        await fill_in(console, developer.email)
        await expect(console.heading).to_have_text("Home")
        assert console.path == ""


async def test_with_mfa_the_code_is_the_second_step(console: Console, developer: Client) -> None:
    user = await create_mfa_user(developer)
    await console.open("/sign-in", title="Sign in")
    await fill_in(console, developer.email)
    await console.field("Code").fill("000000" if user.code() != "000000" else "000001")
    await console.button("Verify").click()
    await expect(console.page.get_by_role("alert")).to_contain_text("code is wrong")
    await console.field("Code").fill(pyotp.TOTP(user.seed).now())
    await console.button("Verify").click()
    await expect(console.heading).to_have_text("Home")


async def test_a_reload_keeps_the_session_and_signing_out_ends_it(
    console: Console, developer: Client
) -> None:
    await console.sign_in(developer)
    await console.open(title="Home")
    await console.page.reload()
    await expect(console.heading).to_have_text("Home")
    await console.page.get_by_role("button", name=developer.email).click()
    await console.page.get_by_role("menuitem", name="Sign out").click()
    await expect(console.heading).to_have_text("Sign in")
    await console.page.reload()
    await expect(console.heading).to_have_text("Sign in")


async def test_no_script_can_read_the_refresh_token(console: Console, developer: Client) -> None:
    await console.sign_in(developer)
    await console.open(title="Home")
    stored = "document.cookie + JSON.stringify({...localStorage, ...sessionStorage})"
    assert "eyJ" not in await console.page.evaluate(stored)
