"""Connection tests of database credentials."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.net import databases
from app.services import Services
from tests.agents.tools.echo_databases import serve_echo_mysql
from tests.agents.vault.connections import check_connection
from tests.agents.vault.servers import DatabaseServer, serve_tls
from tests.assertions import wait_until
from tests.certificates import create_server_context, write_certificate
from tests.ports import free_port
from tests.world import Client, World


async def test_the_right_password_logs_in_to_a_database(
    admin: Client, database_server: DatabaseServer
) -> None:
    result = await check_connection(admin, "database", database_server.secrets())
    assert result["success"] is True, result
    assert result["message"].startswith("Logged in: PostgreSQL 1")


async def test_a_database_host_may_be_a_name(
    admin: Client, database_server: DatabaseServer
) -> None:
    result = await check_connection(admin, "database", database_server.secrets(host="localhost"))
    assert result["success"] is True, result


async def test_a_wrong_database_login_fails_the_test(
    world: World, database_server: DatabaseServer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"password": "wrong-password"}, "InvalidPasswordError"),
        ({"password": ""}, "InvalidPasswordError"),
        ({"username": "nobody"}, "InvalidPasswordError"),
        ({"database": "nothing"}, "InvalidCatalogNameError"),
        ({"ssl_mode": "require"}, "does not speak TLS"),
        ({"ssl_mode": "verify-full"}, "does not speak TLS"),
    ]
    for changes, message in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(changes=changes, message=message):
            result = await check_connection(admin, "database", database_server.secrets(**changes))
            assert result["success"] is False
            assert message in result["message"]


async def test_a_database_without_tls_is_accepted_unless_ssl_mode_requires_tls(
    world: World, database_server: DatabaseServer, subtests: pytest.Subtests
) -> None:
    for ssl_mode in ("disable", "allow", "prefer"):
        admin = await world.user("tenant_admin")
        with subtests.test(ssl_mode=ssl_mode):
            result = await check_connection(
                admin, "database", database_server.secrets(ssl_mode=ssl_mode)
            )
            assert result["success"] is True


async def test_a_database_certificate_is_verified_by_ssl_mode(
    world: World, database_server: DatabaseServer, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """The certificate is verified for the host name, although the connection uses an address."""
    cases: list[tuple[str, bool, bool]] = [
        ("prefer", False, True),
        ("require", False, True),
        ("verify-ca", False, False),
        ("verify-full", False, False),
        ("verify-ca", True, True),
        ("verify-full", True, True),
    ]
    for ssl_mode, is_trusted, success in cases:
        admin = await world.user("tenant_admin")
        with (
            subtests.test(ssl_mode=ssl_mode, is_trusted=is_trusted),
            pytest.MonkeyPatch.context() as monkeypatch,
        ):
            pem = write_certificate(tmp_path, "localhost")
            if is_trusted:
                monkeypatch.setenv("SSL_CERT_FILE", str(pem))
            async with serve_tls(database_server.port, create_server_context(pem)) as port:
                secrets = database_server.secrets(host="localhost", port=port, ssl_mode=ssl_mode)
                result = await check_connection(admin, "database", secrets)
            assert result["success"] is success, result


async def test_verify_full_refuses_a_database_certificate_for_another_name(
    world: World, database_server: DatabaseServer, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for ssl_mode, success in (("require", True), ("verify-full", False)):
        admin = await world.user("tenant_admin")
        with (
            subtests.test(ssl_mode=ssl_mode, success=success),
            pytest.MonkeyPatch.context() as monkeypatch,
        ):
            pem = write_certificate(tmp_path, "db.example.com")
            monkeypatch.setenv("SSL_CERT_FILE", str(pem))
            async with serve_tls(database_server.port, create_server_context(pem)) as port:
                secrets = database_server.secrets(host="localhost", port=port, ssl_mode=ssl_mode)
                result = await check_connection(admin, "database", secrets)
            assert result["success"] is success, result


async def test_an_unreachable_database_fails_the_test(
    world: World, subtests: pytest.Subtests
) -> None:
    for engine in ("postgresql", "mysql"):
        admin = await world.user("tenant_admin")
        with subtests.test(engine=engine):
            secrets = {
                "host": "127.0.0.1",
                "port": free_port(),
                "database": "shop",
                "username": "shop",
                "password": "right-password",
                "engine": engine,
            }
            result = await check_connection(admin, "database", secrets)
            assert result["success"] is False
            assert result["message"] == f"127.0.0.1:{secrets['port']} refused the connection"


async def test_a_connection_to_a_database_is_closed_after_the_test(
    admin: Client, services: Services, database_server: DatabaseServer
) -> None:
    await check_connection(admin, "database", database_server.secrets())
    login = databases.Login(
        engine="postgresql",
        host="127.0.0.1",
        port=database_server.port,
        database="shop",
        username="shop",
        password="right-password",
    )
    async with databases.postgres(services.egress.guard, login, 5) as connection:
        count_others = (
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop' "
            "AND pid <> pg_backend_pid()"
        )

        async def is_closed() -> bool:
            return bool(await connection.fetchval(count_others) == 0)

        # The server needs a moment to end the session of a closed connection.
        await wait_until(is_closed, 10)


async def test_a_server_that_calls_itself_like_the_password_does_not_reveal_it(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[Callable[[str], str]] = [
        lambda password: password,
        lambda password: password[::-1],
        lambda password: f"{password} " * 100_000,
        lambda password: "8" * 190 + password,
    ]
    for change in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(change=change.__name__):
            password = "planted-0123456789-password"
            async with serve_echo_mysql() as echo:
                echo.version = change(password)
                secrets = {"host": "127.0.0.1", "port": echo.port, "database": "d", "username": "u"}
                secrets |= {"password": password, "engine": "mysql"}
                result = await check_connection(admin, "database", secrets)
            assert result["success"] is True, result
            assert result["message"].startswith("Logged in: ")
            assert len(result["message"]) < 300
            assert not any(part in result["message"] for part in ("plant", "tnalp", "0123", "3210"))
