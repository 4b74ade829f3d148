"""Attacks with concurrent requests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pyotp
import pytest

from app.domain.identity.accounts import invitations
from app.security import throttle
from app.security.sessions import require_active_session
from app.services import Services
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import (
    change_role,
    demote,
    invitation_body,
    invite,
    join,
    reactivate,
)
from tests.identity.accounts.records import execute, find_user, set_user
from tests.security.locks import wait_for_blocked_transaction
from tests.world import Client, World

# The lock that a change of administrators takes.
ADMINS_LOCK = 7210032


@asynccontextmanager
async def _hold_request(
    services: Services, request: Coroutine[Any, Any, httpx.Response]
) -> AsyncIterator[asyncio.Task[httpx.Response]]:
    """Starts a request that passes the gate and then waits for a lock until the context exits."""
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("SELECT pg_advisory_xact_lock($1)", ADMINS_LOCK)
        task = asyncio.create_task(request)
        await wait_for_blocked_transaction(services)
        yield task


async def _end_sessions(services: Services, user: Client) -> None:
    await execute(services, "UPDATE sessions SET ended_at = now() WHERE user_id = $1", user.user_id)


async def _make_admin(actor: Client, user_id: str) -> httpx.Response:
    return await change_role(actor, user_id, "tenant_admin")


# A running request


async def test_an_admin_cannot_undo_the_loss_of_access_with_a_running_request(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, Callable[[Client, str], Coroutine[Any, Any, httpx.Response]]]] = [
        ("status", "inactive", reactivate),
        ("role", "viewer", _make_admin),
    ]
    for column, value, undo in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(column=column, value=value):
            async with _hold_request(services, undo(admin, admin.user_id)) as task:
                await set_user(services, admin, **{column: value})
                await _end_sessions(services, admin)
            assert (await task).status_code == 401
            assert getattr(await find_user(services, admin.user_id), column) == value


async def test_a_request_whose_session_ends_while_it_runs_is_refused(
    services: Services, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = (await developer.post("/api/v1/mfa/setup")).json()["secret"]
    refuse_blocked = throttle.refuse_blocked

    async def end_session_after_check(*args: Any) -> None:
        await refuse_blocked(*args)
        await _end_sessions(services, developer)

    monkeypatch.setattr(throttle, "refuse_blocked", end_session_after_check)
    answer = await developer.post("/api/v1/mfa/enable", {"code": pyotp.TOTP(seed).now()})
    assert answer.status_code == 401
    user = await find_user(services, developer.user_id)
    assert user is not None
    assert not user.mfa_enabled


# Invitations


async def test_an_inviter_demoted_during_the_request_cannot_invite(
    services: Services, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    select_tenant = invitations._select_tenant

    async def demote_inviter_afterwards(*args: Any) -> str:
        tenant_id: str = await select_tenant(*args)
        await set_user(services, admin, role="viewer")
        await _end_sessions(services, admin)
        return tenant_id

    monkeypatch.setattr(invitations, "_select_tenant", demote_inviter_afterwards)
    body = invitation_body(role="tenant_admin")
    assert (await admin.post("/users/invite", body)).status_code == 401


async def test_an_invitation_is_voided_when_its_inviter_is_demoted_during_the_request(
    world: World,
    services: Services,
    admin: Client,
    anonymous: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The demotion waits for the invitation and then voids it."""
    inviter = await world.user("tenant_admin", admin.tenant_id)
    demotions: list[asyncio.Task[httpx.Response]] = []

    async def start_demotion_after_check(*args: Any) -> None:
        await require_active_session(*args)
        demotions.append(asyncio.create_task(demote(admin, inviter.user_id)))
        await wait_for_blocked_transaction(services)

    monkeypatch.setattr(invitations, "require_active_session", start_demotion_after_check)
    invitation = await invite(inviter, "tenant_admin")
    assert (await demotions[0]).status_code == 200
    assert await join(anonymous, invitation["email"], invitation["invitation_token"]) == 422
