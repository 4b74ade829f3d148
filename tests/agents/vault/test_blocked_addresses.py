"""Connection tests do not connect to private addresses."""

import socket
from typing import Any

import msgspec
import pytest

from app.domain.agents.vault import connection_tests
from app.domain.agents.vault.oauth import TokenRefresher
from app.domain.agents.vault.types import TYPES
from app.kit import views
from app.net.egress import Egress, Guard
from app.security.principal import Principal
from app.services import Services
from tests.agents.vault.api import list_audit, list_events, run_connection_test
from tests.agents.vault.factories import VALID_SECRETS, create_credential
from tests.agents.vault.sql import store_secrets
from tests.database import run_sql
from tests.net.blocked_addresses import SAMPLE_HOSTS
from tests.world import Client, World


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records the addresses of all connections except those to Unix sockets."""
    addresses: list[Any] = []
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def record_connect(sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX:
            addresses.append(address)
        connect(sock, address)

    def record_connect_ex(sock: socket.socket, address: Any) -> int:
        if sock.family != socket.AF_UNIX:
            addresses.append(address)
        return connect_ex(sock, address)

    monkeypatch.setattr(socket.socket, "connect", record_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", record_connect_ex)
    return addresses


async def _create_credential_for_host(
    admin: Client, services: Services, type_: str, host: str
) -> str:
    """Returns the id of a credential whose test connects to the host."""
    credential = await create_credential(admin, type_)
    credential_id = str(credential["id"])
    url_host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    match type_:
        case "database" | "ssh" | "smtp":
            secrets = {**VALID_SECRETS[type_], "host": host}
            await store_secrets(services, admin, credential_id, secrets)
        case "oauth2":
            secrets = {**VALID_SECRETS[type_], "token_url": f"https://{url_host}/token"}
            await store_secrets(services, admin, credential_id, secrets)
        case _:
            await run_sql(
                services,
                "UPDATE credentials SET metadata = jsonb_build_object('test_url', $2::text) "
                "WHERE id = $1",
                credential_id,
                f"https://{url_host}/me",
            )
    return credential_id


async def test_a_private_address_is_refused_before_a_connection_is_opened(
    world: World, services: Services, connections: list[Any], subtests: pytest.Subtests
) -> None:
    for type_ in TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            for host in SAMPLE_HOSTS:
                credential_id = await _create_credential_for_host(admin, services, type_, host)
                result = await run_connection_test(admin, credential_id)
                assert result["success"] is False, host
                assert "is not a public address" in result["message"], host
                assert "planted" not in result["message"]
            assert connections == []
            assert {
                row["success"] for row in await list_audit(admin) if row["action"] == "tested"
            } == {False}
            assert "planted" not in str(await list_events(admin, "invalid"))


def _replace_guard(services: Services, guard: Guard) -> Services:
    egress = Egress(guard)
    refresher = TokenRefresher(services.db, services.keyring, egress)
    replaced = {**services.area_objects, TokenRefresher: refresher}
    return msgspec.structs.replace(services, egress=egress, area_objects=replaced)


async def _run_test(services: Services, admin: Client, credential_id: str) -> views.TestResult:
    no_permissions: frozenset[str] = frozenset()
    principal = Principal(admin.user_id, admin.tenant_id, "tenant_admin", "ses_1", no_permissions)
    return await connection_tests.run(services, principal, admin.address, credential_id)


async def test_loopback_is_refused_unless_the_operator_allows_it(
    world: World, services: Services, connections: list[Any], subtests: pytest.Subtests
) -> None:
    for type_ in TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            guarded_services = _replace_guard(services, Guard(()))
            for host in ("127.0.0.1", "localhost", "127.1", "[::1]"):
                credential_id = await _create_credential_for_host(admin, services, type_, host)
                assert (await _run_test(guarded_services, admin, credential_id)).success is False, (
                    host
                )
            await guarded_services.egress.close()
            assert connections == []


async def test_a_name_that_resolves_to_a_private_address_is_refused(
    world: World, services: Services, connections: list[Any], subtests: pytest.Subtests
) -> None:
    for type_ in TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):

            async def resolve(_host: str, _port: int) -> list[str]:
                return ["93.184.216.34", "169.254.169.254"]

            guarded_services = _replace_guard(services, Guard((), resolve))
            credential_id = await _create_credential_for_host(
                admin, services, type_, "rebound.example.com"
            )
            result = await _run_test(guarded_services, admin, credential_id)
            await guarded_services.egress.close()
            assert result.success is False
            assert "private address" in result.message
            assert connections == []


async def test_an_invalid_host_is_refused(
    world: World, services: Services, connections: list[Any], subtests: pytest.Subtests
) -> None:
    for type_ in ("database", "ssh", "smtp"):
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            for host in ("/tmp/socket", "a/../b", "x" * 255, "a b", "\t", "ü..de"):
                credential_id = await _create_credential_for_host(admin, services, type_, host)
                assert (await run_connection_test(admin, credential_id))["success"] is False, host
            assert connections == []
