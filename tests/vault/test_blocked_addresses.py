"""No test of a credential leads into the network that Parley stands in."""

import socket
from typing import Any

import msgspec
import pytest

from app.domain.vault import connection_tests, schemas
from app.domain.vault.oauth import TokenRefresher
from app.kit.egress import Egress, Guard
from app.security.principal import Principal
from app.services import Services
from tests.vault.making import GOOD, TYPES, create, plant_secrets, sql, told, trail, tried
from tests.world import Client

BLOCKED = [
    "169.254.169.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "127.0.0.2",
    "0.0.0.0",
    "0",
    "0x7f.2",
    "0x7f000002",
    "2130706434",
    "0177.0.0.2",
    "127.2",
    "0xa9fea9fe",
    "169.254.169.254.",
    "::1",
    "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "fd00::1",
    "fe80::1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
]
LOOPBACK = ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "017700000001", "127.1", "[::1]"]


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every address that something tried to connect to, other than our own stores' files."""
    seen: list[Any] = []
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def watched(own: socket.socket, address: Any) -> None:
        if own.family != socket.AF_UNIX:
            seen.append(address)
        connect(own, address)

    def watched_ex(own: socket.socket, address: Any) -> int:
        if own.family != socket.AF_UNIX:
            seen.append(address)
        return connect_ex(own, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    monkeypatch.setattr(socket.socket, "connect_ex", watched_ex)
    return seen


async def _leading_to(admin: Client, services: Services, type_: str, host: str) -> str:
    """A credential of this type whose test would go to that host."""
    made = await create(admin, type_)
    credential_id = str(made["id"])
    inside = f"[{host}]" if ":" in host and not host.startswith("[") else host
    match type_:
        case "database" | "ssh" | "smtp":
            secrets = {**GOOD[type_], "host": host}
            await plant_secrets(services, admin, credential_id, secrets)
        case "oauth2":
            secrets = {**GOOD[type_], "token_url": f"https://{inside}/token"}
            await plant_secrets(services, admin, credential_id, secrets)
        case _:
            await sql(
                services,
                "UPDATE credentials SET metadata = jsonb_build_object('test_url', $2::text) "
                "WHERE id = $1",
                credential_id,
                f"https://{inside}/me",
            )
    return credential_id


@pytest.mark.parametrize("type_", TYPES)
async def test_an_inner_address_is_refused_before_anybody_is_dialled(
    admin: Client, services: Services, dialled: list[Any], type_: str
) -> None:
    for host in BLOCKED:
        credential_id = await _leading_to(admin, services, type_, host)
        result = await tried(admin, credential_id)
        assert result["success"] is False, host
        assert "not" in result["message"], host
        assert "planted" not in result["message"]
    assert dialled == []
    assert {row["success"] for row in await trail(admin) if row["action"] == "tested"} == {False}
    assert "planted" not in str(await told(admin, "invalid"))


def _behind(services: Services, guard: Guard) -> Services:
    egress = Egress(guard)
    refresher = TokenRefresher(services.db, services.keyring, egress)
    replaced = {**services.of_areas, TokenRefresher: refresher}
    return msgspec.structs.replace(services, egress=egress, of_areas=replaced)


async def _run(services: Services, admin: Client, credential_id: str) -> schemas.TestResult:
    nobody: frozenset[str] = frozenset()
    principal = Principal(admin.user_id, admin.tenant_id, "tenant_admin", "ses_1", nobody)
    return await connection_tests.run(services, principal, admin.address, credential_id)


@pytest.mark.parametrize("type_", TYPES)
async def test_loopback_is_refused_in_every_spelling_unless_the_operator_allows_it(
    admin: Client, services: Services, dialled: list[Any], type_: str
) -> None:
    outside = _behind(services, Guard(()))
    for host in LOOPBACK:
        credential_id = await _leading_to(admin, services, type_, host)
        assert (await _run(outside, admin, credential_id)).success is False, host
    await outside.egress.close()
    assert dialled == []


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["93.184.216.34", "169.254.169.254"], ["::1"], ["fe80::1%lo"]]
)
@pytest.mark.parametrize("type_", TYPES)
async def test_a_name_that_leads_to_an_inner_address_is_refused(
    admin: Client, services: Services, dialled: list[Any], type_: str, addresses: list[str]
) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return addresses

    outside = _behind(services, Guard((), resolve))
    credential_id = await _leading_to(admin, services, type_, "rebound.example.com")
    result = await _run(outside, admin, credential_id)
    await outside.egress.close()
    assert result.success is False
    assert "not public" in result.message
    assert dialled == []


@pytest.mark.parametrize("type_", ["database", "ssh", "smtp"])
@pytest.mark.parametrize("host", ["/tmp/socket", "a/../b", "x" * 255, "a b", "\t", "ü..de"])
async def test_what_is_no_host_is_refused(
    admin: Client, services: Services, dialled: list[Any], type_: str, host: str
) -> None:
    credential_id = await _leading_to(admin, services, type_, host)
    assert (await tried(admin, credential_id))["success"] is False
    assert dialled == []
