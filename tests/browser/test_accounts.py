"""The pages that mails link to, used in a browser."""

import re

from playwright.async_api import Page, expect

from app.services import Services
from tests.browser import looks
from tests.identity.accounts.records import read_mail_texts
from tests.server import Server
from tests.world import Client

NEW_PASSWORD = "Battery9Staple"


async def _find_mail_link(services: Services, recipient: str) -> str:
    """Returns the path of the link in the newest mail to the recipient."""
    text = (await read_mail_texts(services, recipient))[-1]
    match = re.search(r"https?://[^/\s]+(/\S+\?token=\S+)", text)
    assert match, text
    return match.group(1)


async def _log_in(client: Client, email: str, password: str) -> int:
    answer = await client.post("/auth/login", {"email": email, "password": password})
    return answer.status_code


async def test_a_user_resets_a_forgotten_password_after_a_weak_one_is_reported_at_its_field(
    page: Page, server: Server, services: Services, developer: Client, anonymous: Client
) -> None:
    await page.goto(f"{server.url}/forgot-password")
    await page.get_by_label("E-mail").fill(developer.email)
    await page.get_by_role("button").click()
    await expect(page.get_by_role("status")).to_contain_text("a mail is on its way")

    await page.goto(server.url + await _find_mail_link(services, developer.email))
    field = page.get_by_label("New password")
    await field.fill("short")
    await page.get_by_role("button").click()
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description(re.compile("at least 8 characters"))

    await field.fill(NEW_PASSWORD)
    await page.get_by_role("button").click()
    await expect(page.get_by_role("status")).to_contain_text("The password is changed")
    # The token has left the address.
    assert page.url == f"{server.url}/reset-password"
    assert await _log_in(anonymous, developer.email, NEW_PASSWORD) == 200


async def test_an_invalid_link_shows_an_error(page: Page, server: Server) -> None:
    await page.goto(f"{server.url}/verify-email?token=unknown")
    await page.get_by_role("button").click()
    await expect(page.get_by_role("status")).to_contain_text("This link is not valid")


async def test_an_invited_user_joins_without_verifying_their_address(
    page: Page, server: Server, services: Services, admin: Client, anonymous: Client
) -> None:
    email = f"invited.{admin.user_id[-8:]}@example.com"
    await admin.post("/users/invite", {"email": email, "role": "viewer"})
    await page.goto(server.url + await _find_mail_link(services, email))
    for label, text in (
        ("E-mail", email),
        ("First name", "Grace"),
        ("Last name", "Hopper"),
        ("Password", NEW_PASSWORD),
    ):
        await page.get_by_label(label).fill(text)
    await page.get_by_role("button").click()
    await expect(page.get_by_role("status")).to_have_text("Welcome")
    assert await _log_in(anonymous, email, NEW_PASSWORD) == 200


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
    await page.goto(server.url + await _find_mail_link(services, body["email"]))
    await page.get_by_role("button", name="Verify my address").click()
    await expect(page.get_by_role("status")).to_have_text("The e-mail address is verified")


async def test_the_pages_are_accessible_in_every_theme_and_width(
    page: Page, server: Server
) -> None:
    for name in ("register", "forgot-password"):
        await page.goto(f"{server.url}/{name}")
        assert await looks.find_problems(page, name, 360, 1280) == []
