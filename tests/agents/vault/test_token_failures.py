"""OAuth 2: a renewal that fails."""

import asyncio

import msgspec
import pytest

from app.domain.agents.vault.errors import TokenRefused
from app.domain.agents.vault.oauth import TokenRefresher
from app.services import Services
from tests.agents.vault.api import PATH, get_credential, list_actions, list_events
from tests.agents.vault.factories import create_expired_credential
from tests.agents.vault.renewals import hold_renewal
from tests.agents.vault.servers import TokenServer, error_response, token_response
from tests.agents.vault.sql import fetch_credential
from tests.ports import free_port
from tests.world import Client, World


async def test_a_server_error_does_not_invalidate_the_credential(
    world: World, services: Services, token_server: TokenServer, subtests: pytest.Subtests
) -> None:
    for status in (500, 502, 503, 429):
        token_server.reset()
        admin = await world.user("tenant_admin")
        with subtests.test(status=status):
            token_server.respond = lambda _request: error_response(status, "server_error")  # noqa: B023
            credential = await create_expired_credential(admin, services, token_server)
            with pytest.raises(TokenRefused) as raised:
                await services.get(TokenRefresher).get_fresh_secrets(credential)
            assert raised.value.is_final is False
            assert (await get_credential(admin, credential.id))["is_valid"] is True
            assert await list_events(admin, "invalid") == []


async def test_an_unreachable_server_does_not_invalidate_the_credential(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    url = f"http://127.0.0.1:{free_port()}/token"
    credential = await create_expired_credential(admin, services, token_server, token_url=url)
    with pytest.raises(TokenRefused):
        await services.get(TokenRefresher).get_fresh_secrets(credential)
    assert (await get_credential(admin, credential.id))["is_valid"] is True


async def test_a_refused_grant_invalidates_and_emits_one_event(
    world: World,
    services: Services,
    other_processes: list[Services],
    token_server: TokenServer,
    subtests: pytest.Subtests,
) -> None:
    for error in ("invalid_grant", "invalid_client"):
        admin = await world.user("tenant_admin")
        with subtests.test(error=error):
            token_server.respond = lambda _request: error_response(400, error)  # noqa: B023
            credential = await create_expired_credential(admin, services, token_server)
            for process in (services, *other_processes, services):
                with pytest.raises(TokenRefused) as raised:
                    await process.get(TokenRefresher).get_fresh_secrets(credential)
                assert raised.value.is_final is True
            assert (await get_credential(admin, credential.id))["is_valid"] is False
            assert await list_events(admin, "invalid") == [
                {
                    "credential_id": credential.id,
                    "name": "Ours",
                    "credential_type": "oauth2",
                    "reason": f"the token endpoint answered 400 ({error})",
                }
            ]


async def test_a_failure_releases_the_lease(
    world: World, services: Services, token_server: TokenServer, subtests: pytest.Subtests
) -> None:
    for status in (400, 500):
        token_server.reset()
        admin = await world.user("tenant_admin")
        with subtests.test(status=status):
            token_server.respond = lambda _request: error_response(status, "no")  # noqa: B023
            credential = await create_expired_credential(admin, services, token_server)
            with pytest.raises(TokenRefused):
                await services.get(TokenRefresher).get_fresh_secrets(credential)
            row = await fetch_credential(services, credential.id)
            assert (row["refresh_holder"], row["refresh_until"]) == (None, None)
            token_server.respond = lambda _request: token_response("later")
            assert (
                await services.get(TokenRefresher).get_fresh_secrets(credential)
            ).access_token == "later"
            assert (await get_credential(admin, credential.id))["is_valid"] is True


async def test_all_waiting_callers_get_the_failure(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    token_server.respond = lambda _request: error_response(400, "invalid_grant")
    credential = await create_expired_credential(admin, services, token_server)
    renewals = [services.get(TokenRefresher).get_fresh_secrets(credential) for _ in range(5)]
    errors = await asyncio.gather(*renewals, return_exceptions=True)
    assert [type(error) for error in errors] == [TokenRefused] * 5
    assert len(token_server.requests) <= 2
    assert len(await list_events(admin, "invalid")) == 1


async def test_a_deleted_credential_gets_no_token(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    await admin.delete(f"{PATH}/{credential.id}")
    with pytest.raises(TokenRefused, match="no longer exists"):
        await services.get(TokenRefresher).get_fresh_secrets(credential)
    assert token_server.requests == []


async def test_a_credential_deleted_while_it_is_renewed_stays_deleted(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    async with hold_renewal(services, token_server, credential) as renewal:
        await admin.delete(f"{PATH}/{credential.id}")
    await renewal
    assert (await admin.get(f"{PATH}/{credential.id}")).status_code == 404


async def test_another_tenant_s_credential_is_not_renewed(
    admin: Client, services: Services, token_server: TokenServer, super_admin: Client
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    foreign = msgspec.structs.replace(credential, tenant_id=super_admin.tenant_id)
    with pytest.raises(TokenRefused, match="no longer exists"):
        await services.get(TokenRefresher).get_fresh_secrets(foreign)
    assert token_server.requests == []


async def test_a_refresh_is_not_in_the_audit_log(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential = await create_expired_credential(admin, services, token_server)
    await services.get(TokenRefresher).get_fresh_secrets(credential)
    assert await list_actions(admin, credential.id) == ["used", "access_granted", "created"]
