"""Attacks on MFA."""

from typing import Any

import pyotp
import pytest

from app.kit import clock
from app.services import Services
from db.session import ALL_TENANTS
from tests.accounts.throttling import skip_block_check
from tests.world import PASSWORD, Client, World

# MFA


async def _enable_mfa(client: Client, at: int = 0) -> dict[str, Any]:
    setup: dict[str, Any] = (await client.post("/api/v1/mfa/setup")).json()
    code = pyotp.TOTP(setup["secret"]).at(int(clock.epoch()) + at)
    answer = await client.post("/api/v1/mfa/enable", {"code": code})
    assert answer.status_code == 200, answer.text
    return setup


async def _begin_second_session(world: World, client: Client) -> Client:
    answer = await world.anonymous().post(
        "/auth/login", {"email": client.email, "password": PASSWORD}
    )
    return Client(world.app, answer.json()["access_token"], user_id=client.user_id)


async def test_a_code_of_removed_devices_says_nothing_of_new_ones(
    world: World, admin: Client
) -> None:
    old = await world.user("viewer", admin.tenant_id)
    owner = await _begin_second_session(world, old)
    await _enable_mfa(old)
    await admin.post(f"/api/v1/users/{old.user_id}/mfa/reset")
    await _enable_mfa(owner)
    answer = await old.post("/api/v1/mfa/recovery-codes")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "mfa_required")


@pytest.mark.parametrize("path", ["/api/v1/mfa/setup", "/api/v1/mfa/recovery-codes"])
async def test_no_key_replays_seeds_or_codes_to_another_session(
    world: World, developer: Client, path: str
) -> None:
    other = await _begin_second_session(world, developer)
    await _enable_mfa(developer)
    key = {"idempotency-key": "setup-1"}
    assert (await developer.post(path, headers=key)).status_code == 200
    assert (await other.post(path, headers=key)).status_code == 403


async def test_an_account_has_no_more_than_ten_devices(developer: Client) -> None:
    for _ in range(10):
        await _enable_mfa(developer)
    answer = await developer.post("/api/v1/mfa/setup")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "too_many_devices")


# Codes sent while blocked


async def test_a_code_that_is_not_recorded_is_not_used_up(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery = (await _enable_mfa(developer))["recovery_codes"]
    for _ in range(5):
        await developer.post("/api/v1/mfa/verify", {"code": "000000"})
    skip_block_check(monkeypatch)
    answer = await developer.post("/api/v1/mfa/verify", {"code": recovery[0]})
    assert answer.status_code == 429
    status = (await developer.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 10


async def test_a_code_at_sign_in_that_is_not_recorded_is_not_used_up(
    anonymous: Client, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery = (await _enable_mfa(developer))["recovery_codes"]
    for _ in range(5):
        await developer.post("/api/v1/mfa/verify", {"code": "000000"})
    login = {"email": developer.email, "password": PASSWORD}
    token = (await anonymous.post("/auth/login", login)).json()["mfa_token"]
    skip_block_check(monkeypatch)
    answer = await anonymous.post("/auth/mfa/verify", {"mfa_token": token, "code": recovery[0]})
    assert answer.status_code == 429
    status = (await developer.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 10


async def test_a_set_up_from_before_mfa_is_not_confirmed_without_a_code(
    world: World, developer: Client, services: Services
) -> None:
    thief = await _begin_second_session(world, developer)
    seed = (await thief.post("/api/v1/mfa/setup")).json()["secret"]
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE users SET mfa_enabled = true WHERE id = $1", developer.user_id
        )
    answer = await thief.post("/api/v1/mfa/enable", {"code": pyotp.TOTP(seed).now()})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "mfa_required")
