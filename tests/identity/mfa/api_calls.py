"""Requests of the MFA API."""

from typing import Any

import httpx
import pytest

from tests.identity.mfa.authenticators import Authenticator, FrozenClock, MfaUser
from tests.world import PASSWORD, Client, World

API = "/api/v1/mfa"
EACH_ROUTE = pytest.mark.parametrize("route", ["enable", "disable", "verify"])
MFA_OFF = {"enabled": False, "method": "totp", "devices_count": 0, "recovery_codes_remaining": 0}
MFA_ON = {"enabled": True, "method": "totp", "devices_count": 1, "recovery_codes_remaining": 10}


async def set_up(client: Client, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"{API}/setup", **more)
    assert answer.status_code == 200, answer.text
    setup: dict[str, Any] = answer.json()
    return setup


async def enable(client: Client, code: str, **more: Any) -> httpx.Response:
    return await client.post(f"{API}/enable", {"code": code, **more})


async def turn_on_mfa(client: Client, frozen_clock: FrozenClock, **more: Any) -> MfaUser:
    """Enables MFA or adds a device. The code of the next step is not used yet."""
    setup = await set_up(client)
    authenticator = Authenticator(frozen_clock, setup["secret"])
    answer = await enable(client, authenticator.next_code(), **more)
    assert answer.status_code == 200, answer.text
    return MfaUser(client, authenticator, setup["recovery_codes"])


async def create_mfa_user(world: World, frozen_clock: FrozenClock) -> MfaUser:
    return await turn_on_mfa(await world.user(), frozen_clock)


async def disable(client: Client, code: str) -> httpx.Response:
    return await client.post(f"{API}/disable", {"code": code})


async def verify_code(client: Client, code: str) -> bool:
    answer = await client.post(f"{API}/verify", {"code": code})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"valid"}
    valid: bool = answer.json()["valid"]
    return valid


async def get_status(client: Client, **more: Any) -> dict[str, Any]:
    answer = await client.get(f"{API}/status", **more)
    assert answer.status_code == 200, answer.text
    status: dict[str, Any] = answer.json()
    return status


async def list_devices(client: Client) -> list[dict[str, Any]]:
    answer = await client.get(f"{API}/devices")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"devices"}
    devices: list[dict[str, Any]] = answer.json()["devices"]
    return devices


async def remove_device(client: Client, device_id: str) -> httpx.Response:
    return await client.delete(f"{API}/devices/{device_id}")


async def log_in(world: World, email: str) -> dict[str, Any]:
    answer = await world.anonymous().post("/auth/login", {"email": email, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def open_session(world: World, client: Client) -> Client:
    """Opens another session of a user whose MFA is off."""
    token = (await log_in(world, client.email))["access_token"]
    return Client(world.app, token, user_id=client.user_id, email=client.email)


async def sign_in(world: World, email: str, code: str) -> httpx.Response:
    token = (await log_in(world, email))["mfa_token"]
    return await world.anonymous().post("/auth/mfa/verify", {"mfa_token": token, "code": code})


async def reset_mfa(admin: Client, user_id: str) -> httpx.Response:
    return await admin.post(f"/api/v1/users/{user_id}/mfa/reset")


async def replace_recovery_codes(client: Client) -> httpx.Response:
    return await client.post(f"{API}/recovery-codes")


async def send_code(client: Client, route: str, code: str) -> httpx.Response:
    return await client.post(f"{API}/{route}", {"code": code})
