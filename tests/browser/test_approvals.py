"""The page of the links in mails that ask for a decision, used in a browser."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.async_api import Page, expect

from app.domain.automation.approvals import link_tokens
from app.domain.automation.approvals.schemas import Origin
from app.services import Services
from tests.automation.approvals.factories import PATH, read_approval, request
from tests.automation.approvals.test_links import create_token
from tests.browser import looks
from tests.database import fetch_rows, run_sql
from tests.server import Server
from tests.world import Client, World

MARKUP = "<img src=x onerror=\"document.title='bad'\">"
DETAILS = {
    "Amount": "49.90 EUR",
    "Reason": "too bright\ntoo large",
    "Link": "https://example.com/" + "x" * 300,
    "Password": "hunter2",
    "Markup": MARKUP,
}


class Links:
    """The links of the mail to a user, and what they lead to."""

    def __init__(self, page: Page, server: Server, services: Services, user: Client) -> None:
        self.page, self.server, self.services, self.user = page, server, services, user

    async def create(self, **fields: Any) -> str:
        """Returns the id of an approval that asks the user."""
        values = {"origin": Origin("Refunds", "form", "Returns"), "details": DETAILS, **fields}
        return await request(self.services, self.user.tenant_id, **values)

    async def open(self, approval_id: str, decision: str = "approved") -> None:
        token = await create_token(self.services, approval_id, self.user.user_id)
        await self.open_token(token, decision)

    async def open_token(self, token: str, decision: str = "approved") -> None:
        query = urlencode({"decision": decision, "token": token})
        await self.page.goto(f"{self.server.url}/approval?{query}")

    async def expect_title(self, title: str, text: str) -> None:
        await expect(self.page.get_by_role("heading", level=1)).to_have_text(title)
        await expect(self.page.get_by_role("main")).to_contain_text(text)


@pytest.fixture
async def links(page: Page, server: Server, services: Services, world: World) -> Links:
    return Links(page, server, services, await world.user("agent_user"))


async def test_a_question_is_read_and_decided(links: Links) -> None:
    page = links.page
    for decision, verb, past in (
        ("approved", "Approve", "You have approved: Refund order 4711"),
        ("rejected", "Reject", "You have rejected: Refund order 4711"),
    ):
        approval_id = await links.create(timeout_seconds=3600.0)
        await links.open(approval_id, decision)
        await links.expect_title("Refund order 4711", "started by the form Returns")
        await expect(page.get_by_text("too bright")).to_be_visible()
        await expect(page.get_by_text("********")).to_be_visible()
        await expect(page.get_by_text(MARKUP)).to_be_visible()
        await expect(page.get_by_text("You decide as Test User.")).to_be_visible()
        assert (await read_approval(links.user, approval_id))["status"] == "pending"
        await page.get_by_label("Comment").fill("As agreed")
        await page.get_by_role("button", name=verb).click()
        await links.expect_title("Thank you", past)
        # The token has left the address.
        assert page.url == f"{links.server.url}/approval"
        approval = await read_approval(links.user, approval_id)
        assert (approval["status"], approval["comment"]) == (decision, "As agreed")
        assert approval["decided_via"] == "mail"


async def test_a_reader_changes_their_mind_before_deciding(links: Links) -> None:
    approval_id = await links.create()
    await links.open(approval_id)
    await links.page.get_by_role("link", name="Reject instead").click()
    await links.page.get_by_role("button", name="Reject").click()
    await links.expect_title("Thank you", "You have rejected")
    assert (await read_approval(links.user, approval_id))["status"] == "rejected"


async def test_the_page_says_why_nothing_is_left_to_decide(links: Links) -> None:
    decided = await links.create()
    await links.user.post(f"{PATH}/{decided}/reject", {"comment": "Too expensive"})
    await links.open(decided)
    await links.expect_title("Already decided", "Test User rejected this on")
    await links.expect_title("Already decided", "Comment: Too expensive")

    cancelled = await links.create()
    sql = "UPDATE approvals SET status = $2, decided_at = now() WHERE id = $1 RETURNING id"
    await run_sql(links.services, sql, cancelled, "cancelled")
    await links.open(cancelled)
    await links.expect_title("No longer needed", "Refund order 4711")
    await run_sql(links.services, sql, cancelled, "timed_out")
    await links.open(cancelled)
    await links.expect_title("Too late", "Nobody had decided by")

    sql = "SELECT id, created_at, expires_at FROM approvals WHERE id = $1"
    (row,) = await fetch_rows(links.services, sql, await links.create())
    old = {**row, "created_at": row["created_at"] - timedelta(days=8)}
    token = link_tokens.issue(links.services.keyring, old, links.user.user_id)
    await links.open_token(token)
    await links.expect_title("This link has expired", "It worked until")

    for wrong in ("", "apl_unknown", token[:-4]):
        await links.open_token(wrong)
        await links.expect_title("This link is not valid", "copy the whole link")


async def test_a_decision_of_somebody_else_meanwhile_is_shown(links: Links) -> None:
    approval_id = await links.create()
    await links.open(approval_id)
    await links.expect_title("Refund order 4711", "Refunds")
    await links.user.post(f"{PATH}/{approval_id}/reject")
    await links.page.get_by_role("button", name="Approve").click()
    await links.expect_title("Already decided", "Test User rejected this on")


async def test_a_server_that_cannot_be_reached_is_tried_again(links: Links) -> None:
    page = links.page
    approval_id = await links.create()
    await page.route("**/look-up", lambda route: route.abort())
    await links.open(approval_id)
    await expect(page.get_by_role("status")).to_contain_text("The server cannot be reached")
    await page.unroute("**/look-up")
    await page.get_by_role("button", name="Try again").click()
    await links.expect_title("Refund order 4711", "Refunds")


async def test_the_page_is_accessible_in_every_theme_and_width(links: Links) -> None:
    page = links.page
    approval_id = await links.create(timeout_seconds=3600.0, message="It came back.\n\n" * 3)
    await links.open(approval_id)
    await links.expect_title("Refund order 4711", "It came back")
    assert await looks.find_problems(page, "approval", 360, 1280) == []
    await page.get_by_role("button", name="Approve").click()
    await links.expect_title("Thank you", "continues now")
    assert await looks.find_problems(page, "approval-thanks", 360, 1280) == []
    await links.open(approval_id)
    await links.expect_title("Already decided", "approved this")
    assert await looks.find_problems(page, "approval-decided", 360, 1280) == []
    await links.open_token("unknown")
    await links.expect_title("This link is not valid", "copy")
    assert await looks.find_problems(page, "approval-invalid", 360, 1280) == []
