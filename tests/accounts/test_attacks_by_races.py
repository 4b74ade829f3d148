"""Attacks with concurrent requests."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyotp
import pytest

from app.domain.accounts import invitations
from app.security import throttle
from app.security.sessions import require_active_session
from app.services import Services
from db.session import ALL_TENANTS
from tests.accounts.api_calls import join
from tests.accounts.records import fetch_value
from tests.world import Client, World

ADMINS_LOCK = 7210032


async def _wait_until(services: Services, sql: str) -> None:
    for _ in range(500):
        if await fetch_value(services, sql):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(sql)


@asynccontextmanager
async def _hold_request(services: Services, request: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """Starts a request that passes the gate and then waits for a lock until the context exits."""
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("SELECT pg_advisory_xact_lock($1)", ADMINS_LOCK)
        task = asyncio.create_task(request)
        await _wait_until(
            services,
            "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
        )
        yield task


async def _revoke_access(services: Services, client: Client, change: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute(f"UPDATE users SET {change} WHERE id = $1", client.user_id)
        await raw.execute("UPDATE sessions SET ended_at = now() WHERE user_id = $1", client.user_id)


# A running request


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        ("status = 'inactive'", ("POST", "/users/{}/reactivate", None)),
        ("role = 'viewer'", ("PUT", "/users/{}/role", {"role": "tenant_admin"})),
    ],
)
async def test_a_demoted_admin_cannot_undo_it_with_a_running_request(
    services: Services, admin: Client, change: str, undo: tuple[str, str, Any]
) -> None:
    method, path, body = undo
    request = admin(method, path.format(admin.user_id), json=body)
    async with _hold_request(services, request) as task:
        await _revoke_access(services, admin, change)
    assert (await task).status_code == 401
    column, value = re.findall(r"\w+", change)
    assert (
        await fetch_value(services, f"SELECT {column} FROM users WHERE id = $1", admin.user_id)
        == value
    )


async def test_a_request_whose_session_ends_meanwhile_is_refused(
    services: Services, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = (await developer.post("/api/v1/mfa/setup")).json()["secret"]
    refuse_blocked = throttle.refuse_blocked

    async def meanwhile(*args: Any) -> None:
        await refuse_blocked(*args)
        await _revoke_access(services, developer, "status = 'active'")

    monkeypatch.setattr(throttle, "refuse_blocked", meanwhile)
    answer = await developer.post("/api/v1/mfa/enable", {"code": pyotp.TOTP(seed).now()})
    assert answer.status_code == 401
    assert not await fetch_value(
        services, "SELECT mfa_enabled FROM users WHERE id = $1", developer.user_id
    )


# Invitations


async def _invite_admin(admin: Client, email: str) -> str:
    answer = await admin.post("/users/invite", {"email": email, "role": "tenant_admin"})
    token: str = answer.json()["invitation_token"]
    return token


async def test_a_new_invitation_takes_the_place_of_the_one_before(
    admin: Client, anonymous: Client
) -> None:
    email = f"twice.{anonymous.address}@example.com"
    first, second = await _invite_admin(admin, email), await _invite_admin(admin, email)
    assert await join(anonymous, email, first) == 422
    assert await join(anonymous, email, second) == 201


async def test_who_was_deleted_does_not_come_back_with_another_invitation(
    world: World, admin: Client, anonymous: Client
) -> None:
    email = f"back.{anonymous.address}@example.com"
    elsewhere = await world.user("tenant_admin")
    spare = await _invite_admin(elsewhere, email)
    assert await join(anonymous, email, await _invite_admin(admin, email)) == 201
    users = (await admin.get("/users", params={"search": email})).json()["users"]
    await admin.delete(f"/users/{users[0]['id']}")
    assert await join(anonymous, email, spare) == 422


async def test_an_inviter_demoted_meanwhile_cannot_invite(
    services: Services, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    select_tenant = invitations._select_tenant

    async def meanwhile(*args: Any) -> str:
        tenant_id: str = await select_tenant(*args)
        await _revoke_access(services, admin, "role = 'viewer'")
        return tenant_id

    monkeypatch.setattr(invitations, "_select_tenant", meanwhile)
    body = {"email": f"late.{admin.address}@example.com", "role": "tenant_admin"}
    assert (await admin.post("/users/invite", body)).status_code == 401


async def test_an_invitation_is_voided_when_its_inviter_is_demoted_meanwhile(
    world: World,
    services: Services,
    admin: Client,
    anonymous: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The demotion waits for the invitation and then voids it."""
    falling = await world.user("tenant_admin", admin.tenant_id)
    stands = require_active_session
    demotion: list[asyncio.Task[Any]] = []

    async def meanwhile(*args: Any) -> None:
        await stands(*args)
        request = admin.put(f"/users/{falling.user_id}/role", {"role": "viewer"})
        demotion.append(asyncio.create_task(request))
        await _wait_until(services, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")

    monkeypatch.setattr(invitations, "require_active_session", meanwhile)
    email = f"outlive.{anonymous.address}@example.com"
    token = await _invite_admin(falling, email)
    assert (await demotion[0]).status_code == 200
    assert await join(anonymous, email, token) == 422
