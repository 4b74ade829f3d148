"""Sessions show the client's address; what is throttled or known is its network."""

from typing import Any

import pytest

from app.security import throttle
from app.services import Services
from tests.database import run_sql
from tests.identity.accounts.api_calls import get_login_status, log_in
from tests.identity.accounts.records import read_tenant_events
from tests.identity.accounts.throttling import count_failures, guess_passwords
from tests.world import PASSWORD, Client, World


def _client_at(world: World, address: str) -> Client:
    return Client(world.app, address=address)


async def _sign_in_at(world: World, address: str, email: str) -> dict[str, Any]:
    """Returns the new session as the list shows it."""
    pair = (await log_in(_client_at(world, address), email)).json()
    sessions = (await Client(world.app, pair["access_token"]).get("/auth/sessions")).json()["data"]
    [session] = [item for item in sessions if item["is_current"]]
    return dict(session)


async def test_a_session_shows_the_address_of_the_client(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:0::7", "2001:db8:1:2::7"),
        ("fe80::1%eth0", "fe80::1"),
        ("a socket", "unknown"),
    ]
    for address, shown in cases:
        developer = await world.user()
        with subtests.test(address=address, shown=shown):
            for _ in range(2):
                assert (await _sign_in_at(world, address, developer.email))["ip_address"] == shown
            events = await read_tenant_events(services, developer, "signed_in")
            assert [event["ip_address"] for event in events] == [shown, shown]


async def test_an_address_of_a_network_is_known_where_another_one_was_used(
    world: World, developer: Client
) -> None:
    await _sign_in_at(world, "2001:db8:1:3::7", developer.email)
    await guess_passwords(_client_at(world, "2001:db8:9:9::1"), developer.email, 6)
    for address, status in {"2001:db8:1:4::7": 429, "2001:db8:1:3::9": 200}.items():
        caller = _client_at(world, address)
        assert await get_login_status(caller, developer.email, PASSWORD) == status


async def test_the_stored_network_of_an_earlier_release_is_known(
    world: World, developer: Client, services: Services
) -> None:
    sql = "UPDATE sessions SET ip_address = '2001:db8:1:5::' WHERE id = $1"
    await run_sql(services, sql, developer.session_id)
    await guess_passwords(_client_at(world, "192.0.2.9"), developer.email, 6)
    caller = _client_at(world, "2001:db8:1:5::9")
    assert await get_login_status(caller, developer.email, PASSWORD) == 200


async def test_the_network_of_an_address_is_throttled(
    world: World, developer: Client, services: Services
) -> None:
    await count_failures(services, throttle.SIGN_IN_ADDRESS, "2001:db8:1:6::", 50)
    for address, status in {"2001:db8:1:6::7": 429, "2001:db8:1:7::7": 200}.items():
        caller = _client_at(world, address)
        assert await get_login_status(caller, developer.email, PASSWORD) == status
