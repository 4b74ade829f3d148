"""Decisions by the links of mails: what a token allows, and for how long."""

import base64
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import jwt
import msgspec
import pytest

from app.crypto.keyring import Keyring
from app.domain.area import FinishedCall
from app.domain.automation.approvals import link_tokens, links
from app.domain.automation.approvals.errors import ApprovalExpired, ApprovalLinkNotFound
from app.domain.automation.approvals.schemas import Origin
from app.kit import clock
from app.services import Services
from tests.assertions import refused
from tests.automation.approvals.factories import PATH, cancel, read_approval, request
from tests.database import fetch_rows, run_sql
from tests.platform.events.database import load_events
from tests.world import Client, World

LOOK_UP, DECIDE = "/api/v1/public/approvals/look-up", "/api/v1/public/approvals/decide"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
KEYRING = Keyring.parse(Keyring.generate("k1"))
APPROVAL = {"id": "apr_1", "created_at": NOON, "expires_at": None}


async def create_token(services: Services, approval_id: str, user_id: str) -> str:
    sql = "SELECT id, created_at, expires_at FROM approvals WHERE id = $1"
    (row,) = await fetch_rows(services, sql, approval_id)
    return link_tokens.issue(services.keyring, row, user_id)


async def _look_up(client: Client, token: str) -> httpx.Response:
    return await client.post(LOOK_UP, {"token": token})


async def _decide(client: Client, token: str, decision: str = "approved", **body: Any) -> Any:
    return await client.post(DECIDE, {"token": token, "decision": decision, **body})


# The token


def test_a_token_is_valid_until_the_deadline_and_for_seven_days_at_most(
    subtests: pytest.Subtests,
) -> None:
    for deadline, expiry in (
        (None, NOON + 7 * DAY),
        (NOON + DAY, NOON + DAY),
        (NOON + 30 * DAY, NOON + 7 * DAY),
    ):
        with subtests.test(deadline=str(deadline)):
            token = link_tokens.issue(KEYRING, APPROVAL | {"expires_at": deadline}, "usr_1")
            with clock.frozen(expiry - timedelta(seconds=1)):
                claims = link_tokens.verify(KEYRING, token)
            assert (claims.approval_id, claims.user_id) == ("apr_1", "usr_1")
            with clock.frozen(expiry), pytest.raises(ApprovalExpired):
                link_tokens.verify(KEYRING, token)


def _replace_claims(token: str, **claims: Any) -> str:
    head, payload, signature = token.removeprefix(link_tokens.PREFIX).split(".")
    decoded = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    changed = base64.urlsafe_b64encode(msgspec.json.encode({**decoded, **claims})).decode()
    return f"{link_tokens.PREFIX}{head}.{changed.rstrip('=')}.{signature}"


def test_a_token_that_was_altered_or_signed_by_others_is_not_valid(
    subtests: pytest.Subtests,
) -> None:
    token = link_tokens.issue(KEYRING, APPROVAL, "usr_1")
    claims = {"approval_id": "apr_1", "user_id": "usr_1", "exp": 4_000_000_000}
    session_key = KEYRING.derive("k1", "jwt", "")
    for name, wrong in {
        "empty": "",
        "no token": "apl_x",
        "other user": _replace_claims(token, user_id="usr_2"),
        "other approval": _replace_claims(token, approval_id="apr_2"),
        "later": _replace_claims(token, exp=4_000_000_000),
        "cut off": token[:-5],
        "other keys": link_tokens.issue(Keyring.parse(Keyring.generate("k1")), APPROVAL, "usr_1"),
        "unknown key": link_tokens.issue(Keyring.parse(Keyring.generate("k2")), APPROVAL, "usr_1"),
        "another purpose": jwt.encode(claims, session_key, "HS256", headers={"kid": "k1"}),
        "unsigned": jwt.encode(claims, "", "none", headers={"kid": "k1"}),
        "no claims": jwt.encode(
            {"exp": 4_000_000_000},
            KEYRING.derive("k1", "approval-link", ""),
            "HS256",
            headers={"kid": "k1"},
        ),
    }.items():
        with (
            subtests.test(name),
            clock.frozen(NOON),
            pytest.raises(ApprovalLinkNotFound),
        ):
            link_tokens.verify(KEYRING, wrong)


def test_what_started_a_workflow_has_a_description(subtests: pytest.Subtests) -> None:
    for kind, name, text in (
        ("manual", "Ada Lovelace", "Ada Lovelace"),
        ("manual", None, "a user"),
        ("form", "Returns", "the form Returns"),
        ("form", "{0} {}", "the form {0} {}"),
        ("webhook", "Orders", "the webhook Orders"),
        ("event", "agent.created", "the event agent.created"),
        ("workflow", None, "another workflow"),
        ("schedule", None, "its schedule"),
    ):
        with subtests.test(text):
            origin: Any = Origin("Refunds", kind, name)  # type: ignore[arg-type]
            assert links.describe_starter(origin) == text


# The question and the decision


async def test_a_look_up_shows_the_question_and_decides_nothing(
    services: Services, world: World, anonymous: Client
) -> None:
    user = await world.user("agent_user")
    approval_id = await request(
        services,
        user.tenant_id,
        origin=Origin("Refunds", "form", "Returns"),
        details={"Amount": 49.9},
        timeout_seconds=3600.0,
    )
    token = await create_token(services, approval_id, user.user_id)
    for _ in range(2):
        answer = await _look_up(anonymous, token)
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        assert data.pop("expires_at")
        assert data == {
            "title": "Refund order 4711",
            "message": "The customer wants 49.90 back.",
            "workflow_name": "Refunds",
            "started_by": "the form Returns",
            "details": [{"name": "Amount", "value": "49.9"}],
            "status": "pending",
            "user_name": "Test User",
            "comment": None,
            "decided_by": None,
            "decided_at": None,
        }
    assert (await read_approval(user, approval_id))["status"] == "pending"


async def test_the_page_of_a_link_decides_nothing_and_tells_nobody_its_address(
    services: Services, world: World, anonymous: Client
) -> None:
    user = await world.user("agent_user")
    approval_id = await request(services, user.tenant_id)
    token = await create_token(services, approval_id, user.user_id)
    for decision in ("approved", "rejected"):
        answer = await anonymous.get("/approval", params={"decision": decision, "token": token})
        assert answer.status_code == 200
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert token not in answer.text
    assert (await read_approval(user, approval_id))["status"] == "pending"


async def test_a_link_decides_once_as_its_user(
    services: Services,
    world: World,
    anonymous: Client,
    calls: list[FinishedCall],
    subtests: pytest.Subtests,
) -> None:
    for decision in ("approved", "rejected"):
        user = await world.user("agent_user")
        approval_id = await request(services, user.tenant_id)
        token = await create_token(services, approval_id, user.user_id)
        with subtests.test(decision):
            answer = await _decide(anonymous, token, decision, comment="Fine")
            assert answer.status_code == 200, answer.text
            assert answer.json()["data"]["status"] == decision
            approval = await read_approval(user, approval_id)
            assert (approval["status"], approval["comment"]) == (decision, "Fine")
            assert (approval["decided_by"], approval["decided_via"]) == (user.user_id, "mail")
            (event,) = await load_events(services, user.tenant_id, f"approval.{decision}")
            assert (event["data"]["decided_by"], event["data"]["via"]) == (user.user_id, "mail")
            sql = "SELECT actor_id FROM event_log WHERE id = $1"
            assert await fetch_rows(services, sql, event["id"]) == [{"actor_id": user.user_id}]
            assert calls.pop().output["status"] == decision
            refused(await _decide(anonymous, token), 409, "already_decided")
            seen = (await _look_up(anonymous, token)).json()["data"]
            assert (seen["status"], seen["decided_by"]) == (decision, "Test User")
    assert calls == []


async def test_a_link_says_how_an_approval_ended_otherwise(
    services: Services, world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    user = await world.user("agent_user")
    other = await world.user("agent_user", user.tenant_id)

    async def decide_by_request(approval_id: str) -> None:
        await other.post(f"{PATH}/{approval_id}/reject", {"comment": "No"})

    async def decide_by_link(approval_id: str) -> None:
        await _decide(anonymous, await create_token(services, approval_id, other.user_id))

    async def cancel_it(approval_id: str) -> None:
        sql = "SELECT caller_id FROM approvals WHERE id = $1"
        (row,) = await fetch_rows(services, sql, approval_id)
        async with services.db.tx(user.tenant_id) as tx:
            await cancel(tx, services, user.tenant_id, row["caller_id"])

    cases: dict[str, tuple[Callable[[str], Awaitable[None]], str | None]] = {
        "rejected": (decide_by_request, "Test User"),
        "approved": (decide_by_link, "Test User"),
        "cancelled": (cancel_it, None),
    }
    for status, (end, name) in cases.items():
        with subtests.test(status):
            approval_id = await request(services, user.tenant_id)
            token = await create_token(services, approval_id, user.user_id)
            await end(approval_id)
            refused(await _decide(anonymous, token), 409, "already_decided")
            data = (await _look_up(anonymous, token)).json()["data"]
            assert (data["status"], data["decided_by"]) == (status, name)
            assert data["decided_at"] is not None


async def test_an_expired_link_shows_and_decides_nothing(
    services: Services, world: World, anonymous: Client
) -> None:
    user = await world.user("agent_user")
    approval_id = await request(services, user.tenant_id)
    token = await create_token(services, approval_id, user.user_id)
    with clock.frozen(clock.now() + 7 * DAY):
        for answer in (await _look_up(anonymous, token), await _decide(anonymous, token)):
            assert set(refused(answer, 409, "approval_expired")["details"]) == {"expires_at"}
    assert (await read_approval(user, approval_id))["status"] == "pending"


# The user

# How a user loses the right to decide.
_CHANGES = {
    "deactivated": "UPDATE users SET status = 'inactive' WHERE id = $1 RETURNING id",
    "not verified": "UPDATE users SET email_verified = false WHERE id = $1 RETURNING id",
    "another role": "UPDATE users SET role = 'agent_developer' WHERE id = $1 RETURNING id",
    "a role without permission": "UPDATE users SET role = 'viewer' WHERE id = $1 RETURNING id",
    "deleted": "DELETE FROM users WHERE id = $1 RETURNING id",
    "no longer asked": "UPDATE approvals SET role = NULL, user_ids = '{}' WHERE role = 'agent_user'"
    " AND tenant_id = (SELECT tenant_id FROM users WHERE id = $1) RETURNING id",
    "approval deleted": "DELETE FROM approvals"
    " WHERE tenant_id = (SELECT tenant_id FROM users WHERE id = $1) RETURNING id",
}


async def test_a_link_of_a_user_who_may_no_longer_decide_is_not_valid(
    services: Services, world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for name, change in _CHANGES.items():
        with subtests.test(name):
            user = await world.user("agent_user")
            approval_id = await request(services, user.tenant_id)
            token = await create_token(services, approval_id, user.user_id)
            assert await run_sql(services, change, user.user_id)
            for answer in (await _look_up(anonymous, token), await _decide(anonymous, token)):
                refused(answer, 404, "approval_link_not_found")
            sql = "SELECT status FROM approvals WHERE id = $1 AND status <> 'pending'"
            assert await fetch_rows(services, sql, approval_id) == []


async def test_a_link_is_for_one_approval_of_its_users_tenant(
    services: Services, world: World, anonymous: Client
) -> None:
    user, stranger = await world.user("agent_user"), await world.user("agent_user")
    approval_id = await request(services, user.tenant_id)
    token = await create_token(services, approval_id, stranger.user_id)
    refused(await _decide(anonymous, token), 404, "approval_link_not_found")


async def test_a_super_admin_who_is_asked_decides_in_another_tenant_by_a_link(
    services: Services, super_admin: Client, developer: Client, anonymous: Client
) -> None:
    approval_id = await request(services, developer.tenant_id, user_ids=[super_admin.user_id])
    token = await create_token(services, approval_id, super_admin.user_id)
    assert (await _decide(anonymous, token, "rejected")).status_code == 200


async def test_wrong_bodies_are_refused(anonymous: Client, subtests: pytest.Subtests) -> None:
    for path, body, field in (
        (LOOK_UP, {}, "token"),
        (LOOK_UP, {"token": ""}, "token"),
        (LOOK_UP, {"token": "x" * 1025}, "token"),
        (DECIDE, {"token": "x"}, "decision"),
        (DECIDE, {"token": "x", "decision": "cancelled"}, "decision"),
        (DECIDE, {"token": "x", "decision": "approved", "comment": "x" * 2001}, "comment"),
    ):
        with subtests.test(f"{path} {str(body)[:40]}"):
            answer = await anonymous.post(path, body)
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}
