"""The pages that mails link to, for the tests of both of their looks: plain, and in the console."""

import re

from playwright.async_api import Page, expect

from app.services import Services
from tests.database import run_sql
from tests.identity.accounts.records import read_mail_texts
from tests.world import Client

NEW_PASSWORD = "Battery9Staple"


async def find_mail_link(services: Services, recipient: str) -> str:
    """Returns the path of the link in the newest mail to the recipient."""
    text = (await read_mail_texts(services, recipient))[-1]
    match = re.search(r"https?://[^/\s]+(/\S+\?token=\S+)", text)
    assert match, text
    return match.group(1)


async def log_in(client: Client, email: str, password: str) -> int:
    answer = await client.post("/auth/login", {"email": email, "password": password})
    return answer.status_code


async def expect_page(page: Page, title: str, text: str) -> None:
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    await expect(page.get_by_role("main")).to_contain_text(text)


async def invite(admin: Client, email: str, role: str = "viewer") -> str:
    """Returns the id of the invitation."""
    answer = await admin.post("/users/invite", {"email": email, "role": role})
    assert answer.status_code == 201, answer.text
    invitation_id: str = answer.json()["id"]
    return invitation_id


async def fill_names(page: Page, password: str = NEW_PASSWORD) -> None:
    await page.get_by_label("First name").fill("Grace")
    await page.get_by_label("Last name").fill("Hopper")
    await page.get_by_label("Password", exact=True).fill(password)


async def read_tenant_title(services: Services, admin: Client) -> str:
    sql = "UPDATE tenants SET name = name WHERE id = $1 RETURNING name"
    (row,) = await run_sql(services, sql, admin.tenant_id)
    return f"Join {row['name']}"
