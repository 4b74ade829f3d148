"""OAuth 2: one request renews a token for all users, and never overwrites a change."""

import asyncio

import pytest

from app.domain.agents.vault import oauth, queries
from app.domain.agents.vault.errors import TokenRefused
from app.domain.agents.vault.oauth import TokenRefresher
from app.services import Services
from db.fast import Row
from db.session import Tx
from tests.agents.vault.api import (
    PATH,
    get_credential,
    list_events,
    reveal_secrets,
    unseal_credential,
)
from tests.agents.vault.factories import create_expired_credential, create_oauth2_credential
from tests.agents.vault.renewals import hold_renewal
from tests.agents.vault.servers import TokenServer, error_response, token_response
from tests.agents.vault.sql import EXPIRE_TOKEN, fetch_credential
from tests.assertions import until
from tests.database import run_sql
from tests.world import Client, World


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the credentials that a renewal polls while another one has the lease."""
    credential_ids: list[str] = []
    find_secrets = queries.find_secrets

    async def record_poll(tx: Tx, tenant_id: str, credential_id: str) -> Row | None:
        credential_ids.append(credential_id)
        return await find_secrets(tx, tenant_id, credential_id)

    monkeypatch.setattr(queries, "find_secrets", record_poll)
    return credential_ids


async def test_a_valid_token_is_used_without_a_request(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(admin, token_server, access_token="good")
    credential = await unseal_credential(services, admin, credential_id)
    assert (await services.get(TokenRefresher).get_fresh_secrets(credential)).access_token == "good"
    assert token_server.requests == []


async def test_a_token_is_renewed_shortly_before_it_expires(
    world: World, services: Services, token_server: TokenServer, subtests: pytest.Subtests
) -> None:
    for seconds, requests in ((5, 1), (25, 1), (45, 0), (3600, 0)):
        token_server.reset()
        admin = await world.user("tenant_admin")
        with subtests.test(seconds=seconds, requests=requests):
            credential_id = await create_oauth2_credential(admin, token_server, access_token="good")
            set_expiry = (
                "UPDATE credentials SET token_expires_at = now() + $2 * interval '1 second'"
                " WHERE id = $1"
            )
            await run_sql(services, set_expiry, credential_id, seconds)
            await services.get(TokenRefresher).get_fresh_secrets(
                await unseal_credential(services, admin, credential_id)
            )
            assert len(token_server.requests) == requests


async def test_a_renewal_changes_only_the_tokens(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(admin, token_server, scopes=[], access_token="")
    secrets = await reveal_secrets(admin, credential_id)
    await services.get(TokenRefresher).get_fresh_secrets(
        await unseal_credential(services, admin, credential_id)
    )
    assert await reveal_secrets(admin, credential_id) == {**secrets, "access_token": "token-1"}
    stored = await get_credential(admin, credential_id)
    assert stored["secret_keys"] == sorted(secrets)
    # Nobody else's change: the tag of the credential stays.
    assert stored["secrets_updated_at"] is None


async def test_the_first_use_requests_the_first_token(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await unseal_credential(
        services, admin, await create_oauth2_credential(admin, token_server)
    )
    assert (
        await services.get(TokenRefresher).get_fresh_secrets(credential)
    ).access_token == "token-1"
    second_use = await unseal_credential(services, admin, credential.id)
    assert (
        await services.get(TokenRefresher).get_fresh_secrets(second_use)
    ).access_token == "token-1"
    assert len(token_server.requests) == 1


async def test_twenty_users_in_three_processes_make_one_request(
    admin: Client,
    services: Services,
    other_processes: list[Services],
    token_server: TokenServer,
    polls: list[str],
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    token_server.may_respond.clear()
    processes = [services, *other_processes]
    tasks = [
        asyncio.create_task(processes[number % 3].get(TokenRefresher).get_fresh_secrets(credential))
        for number in range(20)
    ]
    await until(lambda: token_server.requests)
    # Two of the processes wait for the third, and each polls more than once.
    await until(lambda: len(polls) >= 6)
    token_server.may_respond.set()
    secrets_list = await asyncio.gather(*tasks)
    assert {secrets.access_token for secrets in secrets_list} == {"token-1"}
    assert len(token_server.requests) == 1
    assert (await fetch_credential(services, credential.id))["refresh_holder"] is None


async def test_a_rotated_refresh_token_is_stored_and_used_next(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    token_server.respond = lambda _request: token_response(
        f"token-{len(token_server.requests)}", refresh_token=f"refresh-{len(token_server.requests)}"
    )
    credential = await create_expired_credential(admin, services, token_server)
    await services.get(TokenRefresher).get_fresh_secrets(credential)
    assert (await reveal_secrets(admin, credential.id))["refresh_token"] == "refresh-1"
    await run_sql(services, EXPIRE_TOKEN, credential.id)
    await services.get(TokenRefresher).get_fresh_secrets(
        await unseal_credential(services, admin, credential.id)
    )
    assert [request.form["refresh_token"] for request in token_server.requests] == [
        "planted-refresh",
        "refresh-1",
    ]


async def test_a_refresh_token_that_is_not_rotated_stays(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    await services.get(TokenRefresher).get_fresh_secrets(credential)
    secrets = await reveal_secrets(admin, credential.id)
    assert (secrets["refresh_token"], secrets["access_token"]) == ("planted-refresh", "token-1")


async def test_a_rejected_token_is_renewed_once(
    admin: Client, services: Services, other_processes: list[Services], token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(admin, token_server, access_token="refused")
    credential = await unseal_credential(services, admin, credential_id)
    renewals = [
        process.get(TokenRefresher).get_fresh_secrets(credential, rejected_token="refused")
        for process in (services, *other_processes)
        for _ in range(3)
    ]
    secrets_list = await asyncio.gather(*renewals)
    assert {secrets.access_token for secrets in secrets_list} == {"token-1"}
    assert len(token_server.requests) == 1


async def test_a_rejected_token_that_was_just_renewed_is_renewed_again(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    token_server.respond = lambda _request: token_response(f"token-{len(token_server.requests)}")
    credential = await create_expired_credential(admin, services, token_server)
    refresher = services.get(TokenRefresher)
    assert (await refresher.get_fresh_secrets(credential)).access_token == "token-1"
    secrets = await refresher.get_fresh_secrets(credential, rejected_token="token-1")
    assert secrets.access_token == "token-2"


async def test_a_late_caller_with_a_rejected_token_gets_the_newer_one(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(admin, token_server, access_token="refused")
    credential = await unseal_credential(services, admin, credential_id)
    await services.get(TokenRefresher).get_fresh_secrets(credential, rejected_token="refused")
    late = await services.get(TokenRefresher).get_fresh_secrets(
        credential, rejected_token="refused"
    )
    assert late.access_token == "token-1"
    assert len(token_server.requests) == 1


async def test_secrets_that_were_replaced_meanwhile_are_not_overwritten(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    new_secrets = token_server.secrets(client_id="new-client", access_token="new-token")
    async with hold_renewal(services, token_server, credential) as renewal:
        await admin.put(f"{PATH}/{credential.id}/secrets", {"secrets": new_secrets})
    await renewal
    assert await reveal_secrets(admin, credential.id) == new_secrets
    row = await fetch_credential(services, credential.id)
    assert (row["token_expires_at"], row["refresh_holder"], row["is_valid"]) == (None, None, True)


async def test_a_refusal_of_replaced_secrets_does_not_invalidate_the_new_ones(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    token_server.respond = lambda _request: error_response(400, "invalid_grant")
    credential = await create_expired_credential(admin, services, token_server)
    async with hold_renewal(services, token_server, credential) as renewal:
        await admin.put(f"{PATH}/{credential.id}/secrets", {"secrets": token_server.secrets()})
    with pytest.raises(TokenRefused):
        await renewal
    assert (await get_credential(admin, credential.id))["is_valid"] is True
    assert await list_events(admin, "invalid") == []


async def test_a_refresh_and_a_concurrent_update_are_both_stored(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    async with hold_renewal(services, token_server, credential) as renewal:
        await admin.put(f"{PATH}/{credential.id}", {"name": "New", "metadata": {"a": 1}})
    await renewal
    updated = await get_credential(admin, credential.id)
    assert (updated["name"], updated["metadata"]) == ("New", {"a": 1})
    assert (await reveal_secrets(admin, credential.id))["access_token"] == "token-1"


async def test_a_dead_holder_is_replaced_when_its_lease_ends(
    admin: Client, services: Services, token_server: TokenServer, polls: list[str]
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    set_lease = (
        "UPDATE credentials SET refresh_holder = 'rfr_dead', refresh_until = now() + $2 * "
        "interval '1 second' WHERE id = $1"
    )
    await run_sql(services, set_lease, credential.id, 25)
    task = asyncio.create_task(services.get(TokenRefresher).get_fresh_secrets(credential))
    await until(lambda: len(polls) >= 3)
    assert token_server.requests == []
    await run_sql(services, set_lease, credential.id, -1)
    assert (await task).access_token == "token-1"
    assert (await fetch_credential(services, credential.id))["refresh_holder"] is None


async def test_a_holder_whose_lease_ended_writes_nothing(
    admin: Client, services: Services, other_processes: list[Services], token_server: TokenServer
) -> None:
    """Another holder has renewed the token since."""
    credential = await create_expired_credential(admin, services, token_server)
    end_lease = "UPDATE credentials SET refresh_until = now() - interval '1 second' WHERE id = $1"
    other_refresher = other_processes[0].get(TokenRefresher)
    async with hold_renewal(services, token_server, credential) as late_renewal:
        await run_sql(services, end_lease, credential.id)
        renewal = asyncio.create_task(other_refresher.get_fresh_secrets(credential))
        await until(lambda: len(token_server.requests) == 2)
    await asyncio.gather(late_renewal, renewal)
    row = await fetch_credential(services, credential.id)
    assert (row["refresh_holder"], row["secrets_version"]) == (None, 2)
    assert (await reveal_secrets(admin, credential.id))["access_token"] == "token-2"


async def test_waiting_for_a_holder_ends_with_an_error(
    admin: Client, services: Services, token_server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth, "_LEASE_SECONDS", 0.2)
    credential = await create_expired_credential(admin, services, token_server)
    await run_sql(
        services,
        "UPDATE credentials SET refresh_holder = 'rfr_dead', "
        "refresh_until = now() + interval '1 hour' WHERE id = $1",
        credential.id,
    )
    with pytest.raises(TokenRefused, match="in time") as raised:
        await services.get(TokenRefresher).get_fresh_secrets(credential)
    assert raised.value.is_final is False
    assert token_server.requests == []


async def test_a_cancelled_caller_does_not_cancel_the_renewal_of_others(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    async with hold_renewal(services, token_server, credential) as first:
        second = asyncio.create_task(services.get(TokenRefresher).get_fresh_secrets(credential))
        await asyncio.sleep(0)
        first.cancel()
    assert (await second).access_token == "token-1"
    assert first.cancelled()
