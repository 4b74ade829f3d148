"""OAuth 2: the request to the token endpoint, and its response."""

import base64

import pytest
from aiohttp import web

from app.domain.agents.vault.errors import TokenRefused
from app.domain.agents.vault.oauth import TokenRefresher
from app.kit import clock
from app.services import Services
from tests.agents.vault.api import get_credential, list_events, reveal_secrets, run_connection_test
from tests.agents.vault.factories import create_expired_credential, create_oauth2_credential
from tests.agents.vault.servers import (
    Responder,
    TokenRequest,
    TokenServer,
    error_response,
    token_response,
)
from tests.agents.vault.sql import fetch_credential
from tests.ports import free_port
from tests.world import Client, World


async def test_a_client_requests_a_token_by_client_credentials(
    admin: Client, token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(
        admin, token_server, scopes=["read", "write all"]
    )
    assert (await run_connection_test(admin, credential_id))["success"] is True
    (request,) = token_server.requests
    assert request == TokenRequest(
        {
            "grant_type": "client_credentials",
            "scope": "read write all",
            "client_id": "client",
            "client_secret": "planted-client-secret",
        },
        None,
    )


async def test_a_refresh_token_is_used_where_there_is_one(
    admin: Client, token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(
        admin, token_server, refresh_token="planted-refresh"
    )
    await run_connection_test(admin, credential_id)
    (request,) = token_server.requests
    assert request.form["grant_type"] == "refresh_token"
    assert request.form["refresh_token"] == "planted-refresh"


async def test_client_credentials_are_sent_in_the_header_when_the_form_is_refused(
    admin: Client, token_server: TokenServer
) -> None:
    pair = base64.b64encode(b"cli%3Aent%20%C3%BC:planted%2Fsecret").decode()

    def respond(request: TokenRequest) -> web.Response:
        if "client_secret" in request.form or request.authorization != f"Basic {pair}":
            return error_response(401, "invalid_client")
        return token_response("by-header")

    token_server.respond = respond
    secrets = {"client_id": "cli:ent ü", "client_secret": "planted/secret"}
    credential_id = await create_oauth2_credential(admin, token_server, **secrets)
    assert (await run_connection_test(admin, credential_id))["success"] is True
    assert len(token_server.requests) == 2
    assert (await reveal_secrets(admin, credential_id))["access_token"] == "by-header"


async def test_a_test_stores_the_new_token_and_its_expiry(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(admin, token_server, access_token="before")
    await run_connection_test(admin, credential_id)
    assert (await reveal_secrets(admin, credential_id))["access_token"] == "token-1"
    lifetime = (await fetch_credential(services, credential_id))["token_expires_at"] - clock.now()
    assert 3500 < lifetime.total_seconds() <= 3600


async def test_the_names_of_secrets_stay_in_order_after_a_refresh(
    admin: Client, token_server: TokenServer
) -> None:
    credential_id = await create_oauth2_credential(admin, token_server)
    await run_connection_test(admin, credential_id)
    keys = (await get_credential(admin, credential_id))["secret_keys"]
    assert keys == ["access_token", "client_id", "client_secret", "token_url"]


_CASES: list[tuple[web.Response, str]] = [
    (error_response(401, "invalid_client"), "the token endpoint answered 401 (invalid_client)"),
    (error_response(400, "invalid_grant"), "the token endpoint answered 400 (invalid_grant)"),
    (error_response(500, "server_error"), "the token endpoint answered 500 (server_error)"),
    (error_response(429, "slow_down"), "the token endpoint answered 429 (slow_down)"),
    (web.Response(status=404), "the token endpoint answered 404"),
    (web.Response(body=b"<html>"), "the token endpoint answered 200"),
    (web.Response(body=b"\xff\xfe"), "the token endpoint answered 200"),
    (web.Response(body=b"[" * 100_000), "the token endpoint answered 200"),
    (web.json_response({"access_token": ""}), "the token endpoint answered 200"),
    (web.json_response({"access_token": 5}), "the token endpoint answered 200"),
    (web.json_response({"error": {"code": 5}}), "the token endpoint answered 200"),
    (web.Response(status=302, headers={"Location": "/token"}), "answered 302"),
]


def _copy_response(response: web.Response) -> Responder:
    """A response can be sent once."""
    status, body, headers = response.status, response.body, dict(response.headers)
    return lambda _request: web.Response(status=status, body=body, headers=headers)


async def test_a_test_without_a_token_fails(
    world: World, token_server: TokenServer, subtests: pytest.Subtests
) -> None:
    for response, message in _CASES:
        token_server.reset()
        admin = await world.user("tenant_admin")
        with subtests.test(response=response, message=message):
            token_server.respond = _copy_response(response)
            credential_id = await create_oauth2_credential(admin, token_server)
            result = await run_connection_test(admin, credential_id)
            assert result["success"] is False
            assert message in result["message"]
            assert (await get_credential(admin, credential_id))["is_valid"] is False
            assert len(await list_events(admin, "invalid")) == 1


async def test_an_unreachable_token_endpoint_fails_the_test(
    admin: Client, token_server: TokenServer
) -> None:
    url = f"http://127.0.0.1:{free_port()}/token"
    credential_id = await create_oauth2_credential(admin, token_server, token_url=url)
    result = await run_connection_test(admin, credential_id)
    assert result["success"] is False
    assert "cannot be reached" in result["message"]


async def test_an_unusable_expires_in_means_no_expiry(
    world: World, services: Services, token_server: TokenServer, subtests: pytest.Subtests
) -> None:
    cases: list[object] = [None, "soon", "NaN", "Infinity", 0, -5, 1e300]
    for expires_in in cases:
        token_server.reset()
        admin = await world.user("tenant_admin")
        with subtests.test(expires_in=expires_in):
            token_server.respond = lambda _request: token_response("new", expires_in=expires_in)  # noqa: B023
            credential = await create_expired_credential(admin, services, token_server)
            assert (
                await services.get(TokenRefresher).get_fresh_secrets(credential)
            ).access_token == "new"
            assert (await fetch_credential(services, credential.id))["token_expires_at"] is None


async def test_a_boolean_expires_in_fails_the_renewal(
    admin: Client, services: Services, token_server: TokenServer
) -> None:
    token_server.respond = lambda _request: token_response("new", expires_in=True)
    credential = await create_expired_credential(admin, services, token_server)
    with pytest.raises(TokenRefused):
        await services.get(TokenRefresher).get_fresh_secrets(credential)


async def test_expires_in_may_be_a_number_or_a_string(
    world: World, services: Services, token_server: TokenServer, subtests: pytest.Subtests
) -> None:
    cases: list[object] = [3600, "3600", 3600.0, "3600.5"]
    for expires_in in cases:
        token_server.reset()
        admin = await world.user("tenant_admin")
        with subtests.test(expires_in=expires_in):
            token_server.respond = lambda _request: token_response("new", expires_in=expires_in)  # noqa: B023
            credential = await create_expired_credential(admin, services, token_server)
            await services.get(TokenRefresher).get_fresh_secrets(credential)
            lifetime = (await fetch_credential(services, credential.id))[
                "token_expires_at"
            ] - clock.now()
            assert 3500 < lifetime.total_seconds() < 3602


async def test_a_secret_in_an_error_is_masked(admin: Client, token_server: TokenServer) -> None:
    token_server.respond = lambda request: error_response(
        400, f"bad {request.form['client_secret']}"
    )
    credential_id = await create_oauth2_credential(admin, token_server)
    result = await run_connection_test(admin, credential_id)
    assert "planted" not in result["message"]
    (event,) = await list_events(admin, "invalid")
    assert "planted" not in str(event)


async def test_a_truncated_error_contains_no_part_of_a_secret(
    admin: Client, token_server: TokenServer
) -> None:
    token_server.respond = lambda request: error_response(
        400, "x" * 70 + request.form["client_secret"]
    )
    credential_id = await create_oauth2_credential(admin, token_server)
    assert "planted" not in (await run_connection_test(admin, credential_id))["message"]
