"""Testing credentials for databases, mail and SSH servers: a real login."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from app.domain.vault import connection_tests
from app.kit import databases
from app.services import Services
from tests.ports import free_port
from tests.vault.making import create, shown, told, tried
from tests.vault.servers import (
    DatabaseServer,
    MailServer,
    ShellServer,
    certificate,
    mail_server,
    private,
    public,
    server_context,
    talking,
    with_tls,
)
from tests.world import Client


async def _result(admin: Client, type_: str, secrets: dict[str, Any]) -> dict[str, Any]:
    """Of a test; what it says of success is what the credential then says of itself."""
    made = await create(admin, type_, secrets)
    result = await tried(admin, made["id"])
    after = await shown(admin, made["id"])
    assert after["is_valid"] is result["success"]
    assert after["last_tested_at"] == result["tested_at"]
    events = await told(admin, "invalid")
    assert [event["reason"] for event in events] == ([] if result["success"] else [
        result["message"]
    ])  # fmt: skip
    for name in ("password", "passphrase", "private_key"):
        hidden = secrets.get(name)
        assert not hidden or hidden not in str(result) + str(events)
    return result


# Databases


async def test_the_right_password_logs_in_to_a_database(
    admin: Client, database: DatabaseServer
) -> None:
    result = await _result(admin, "database", database.secrets())
    assert result["success"] is True
    assert result["message"].startswith("Logged in: PostgreSQL 1")


async def test_a_database_may_be_named_instead_of_numbered(
    admin: Client, database: DatabaseServer
) -> None:
    result = await _result(admin, "database", database.secrets(host="localhost"))
    assert result["success"] is True, result


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"password": "wrong-password"}, "InvalidPasswordError"),
        ({"password": ""}, "InvalidPasswordError"),
        ({"username": "nobody"}, "InvalidPasswordError"),
        ({"database": "nothing"}, "InvalidCatalogNameError"),
        ({"ssl_mode": "require"}, "TlsRefused"),
        ({"ssl_mode": "verify-full"}, "TlsRefused"),
    ],
)
async def test_a_wrong_login_of_a_database_is_no_success(
    admin: Client, database: DatabaseServer, wrong: dict[str, Any], message: str
) -> None:
    result = await _result(admin, "database", database.secrets(**wrong))
    assert result["success"] is False
    assert message in result["message"]


@pytest.mark.parametrize("ssl_mode", ["disable", "allow", "prefer"])
async def test_a_database_without_tls_serves_who_does_not_insist(
    admin: Client, database: DatabaseServer, ssl_mode: str
) -> None:
    result = await _result(admin, "database", database.secrets(ssl_mode=ssl_mode))
    assert result["success"] is True


@pytest.mark.parametrize(
    ("ssl_mode", "trusted", "success"),
    [
        ("prefer", False, True),
        ("require", False, True),
        ("verify-ca", False, False),
        ("verify-full", False, False),
        ("verify-ca", True, True),
        ("verify-full", True, True),
    ],
)
async def test_a_database_s_certificate_is_checked_as_asked(
    admin: Client,
    database: DatabaseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ssl_mode: str,
    *,
    trusted: bool,
    success: bool,
) -> None:
    """By its name, although the connection goes to an address."""
    pem = certificate(tmp_path, "localhost")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with with_tls(database.port, server_context(pem)) as port:
        secrets = database.secrets(host="localhost", port=port, ssl_mode=ssl_mode)
        result = await _result(admin, "database", secrets)
    assert result["success"] is success, result


async def test_a_database_with_another_s_certificate_is_no_success(
    admin: Client, database: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = certificate(tmp_path, "db.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with with_tls(database.port, server_context(pem)) as port:
        secrets = database.secrets(host="localhost", port=port, ssl_mode="verify-full")
        assert (await _result(admin, "database", secrets))["success"] is False


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
async def test_nobody_at_the_port_of_a_database_is_no_success(admin: Client, engine: str) -> None:
    secrets = {
        "host": "127.0.0.1",
        "port": free_port(),
        "database": "shop",
        "username": "shop",
        "password": "right-password",
        "engine": engine,
    }
    result = await _result(admin, "database", secrets)
    assert result["success"] is False
    assert result["message"].startswith("the login failed")


async def test_a_connection_to_a_database_is_closed_after_the_test(
    admin: Client, services: Services, database: DatabaseServer
) -> None:
    await _result(admin, "database", database.secrets())
    login = databases.Login(
        engine="postgresql",
        host="127.0.0.1",
        port=database.port,
        database="shop",
        username="shop",
        password="right-password",
    )
    async with databases.postgres(services.egress.guard, login, 5) as connection:
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop' "
            "AND pid <> pg_backend_pid()"
        )
        assert await connection.fetchval(others) == 0


# Mail


async def test_the_right_password_logs_in_to_a_mail_server(admin: Client, mail: MailServer) -> None:
    result = await _result(admin, "smtp", mail.secrets())
    assert (result["success"], result["message"]) == (True, "The mail server took the login")
    assert mail.logins == [b"shop"]


async def test_the_wrong_password_for_a_mail_server_is_no_success(
    admin: Client, mail: MailServer
) -> None:
    result = await _result(admin, "smtp", mail.secrets(password="wrong-password"))
    assert (result["success"], result["message"]) == (False, "the mail server answered 535")


async def test_a_mail_server_without_login_only_has_to_answer(
    admin: Client, mail: MailServer
) -> None:
    secrets = {"host": "127.0.0.1", "port": mail.port, "use_tls": False}
    result = await _result(admin, "smtp", secrets)
    assert (result["success"], result["message"]) == (True, "The mail server answers")
    assert mail.logins == []


async def test_a_password_is_not_sent_to_a_mail_server_without_the_tls_it_should_have(
    admin: Client, mail: MailServer
) -> None:
    result = await _result(admin, "smtp", mail.secrets(use_tls=True))
    assert result["success"] is False
    assert mail.logins == []


@pytest.mark.parametrize(("name", "success"), [("localhost", True), ("mail.example.com", False)])
async def test_a_mail_server_s_certificate_is_checked_by_its_name(
    admin: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, success: bool
) -> None:
    pem = certificate(tmp_path, name)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    tls = {"tls_context": server_context(pem), "require_starttls": True, "auth_require_tls": True}
    async with mail_server(**tls) as mail:
        result = await _result(admin, "smtp", mail.secrets(host="localhost", use_tls=True))
    assert result["success"] is success, result
    assert bool(mail.logins) is success


async def test_a_mail_server_that_nobody_vouches_for_gets_no_password(
    admin: Client, tmp_path: Path
) -> None:
    tls = {"tls_context": server_context(certificate(tmp_path, "localhost"))}
    async with mail_server(**tls) as mail:
        result = await _result(admin, "smtp", mail.secrets(host="localhost", use_tls=True))
    assert result["success"] is False
    assert mail.logins == []


@pytest.mark.parametrize("login", [{"username": "jürgen"}, {"password": "schlüssel-ü"}])
async def test_a_mail_login_may_be_other_than_ascii(
    admin: Client, mail: MailServer, login: dict[str, str]
) -> None:
    assert (await _result(admin, "smtp", mail.secrets(**login)))["success"] is False


async def test_nobody_at_the_port_of_a_mail_server_is_no_success(admin: Client) -> None:
    secrets = {"host": "127.0.0.1", "port": free_port(), "use_tls": False}
    result = await _result(admin, "smtp", secrets)
    assert result["success"] is False
    assert result["message"].startswith("no session with the mail server")


# SSH


async def test_the_right_key_logs_in_by_ssh(admin: Client, shell: ShellServer) -> None:
    result = await _result(admin, "ssh", shell.secrets())
    assert result["success"] is True
    assert "set host_key to pin it" in result["message"]


async def test_the_right_key_and_the_pinned_server_log_in(
    admin: Client, shell: ShellServer
) -> None:
    result = await _result(admin, "ssh", shell.secrets(host_key=public(shell.host_key)))
    assert (result["success"], result["message"]) == (True, "Handshake and login worked")


async def test_a_key_that_the_server_does_not_know_is_no_success(
    admin: Client, shell: ShellServer
) -> None:
    other = private(asyncssh.generate_private_key("ssh-ed25519"))
    result = await _result(admin, "ssh", shell.secrets(private_key=other))
    assert (result["success"], result["message"]) == (False, "the server does not take this key")


async def test_another_server_than_the_pinned_one_is_no_success(
    admin: Client, shell: ShellServer
) -> None:
    other = public(asyncssh.generate_private_key("ssh-ed25519"))
    result = await _result(admin, "ssh", shell.secrets(host_key=other))
    assert (result["success"], result["message"]) == (False, "the server shows another host key")


@pytest.mark.parametrize("host_key", ["nonsense", "ssh-ed25519 AAAA", "ssh-ed25519"])
async def test_a_pinned_key_that_is_none_pins_nothing_open(
    admin: Client, shell: ShellServer, host_key: str
) -> None:
    result = await _result(admin, "ssh", shell.secrets(host_key=host_key))
    assert (result["success"], result["message"]) == (False, "host_key is no public key")


@pytest.mark.parametrize(
    ("passphrase", "success"), [("right-phrase", True), ("wrong-phrase", False), ("", False)]
)
async def test_a_locked_key_opens_with_its_passphrase_alone(
    admin: Client, shell: ShellServer, passphrase: str, *, success: bool
) -> None:
    secrets = shell.secrets(private_key=private(shell.key, "right-phrase"), passphrase=passphrase)
    result = await _result(admin, "ssh", secrets)
    assert result["success"] is success, result
    if not success:
        assert "is the passphrase right?" in result["message"]


async def test_a_key_locked_as_ssh_keygen_does_opens_with_its_passphrase(
    admin: Client, shell: ShellServer
) -> None:
    locked = shell.key.export_private_key("openssh", passphrase="right-phrase").decode()
    assert "BEGIN OPENSSH PRIVATE KEY" in locked
    secrets = shell.secrets(private_key=locked, passphrase="right-phrase")
    assert (await _result(admin, "ssh", secrets))["success"] is True


@pytest.mark.parametrize("key", ["nonsense", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
async def test_a_key_that_is_none_is_no_success(
    admin: Client, shell: ShellServer, key: str
) -> None:
    result = await _result(admin, "ssh", shell.secrets(private_key=key))
    assert result["success"] is False
    assert "cannot be read" in result["message"]


async def test_a_public_key_is_no_private_one(admin: Client, shell: ShellServer) -> None:
    result = await _result(admin, "ssh", shell.secrets(private_key=public(shell.key)))
    assert result["success"] is False


async def test_nobody_at_the_port_of_ssh_is_no_success(admin: Client, shell: ShellServer) -> None:
    result = await _result(admin, "ssh", shell.secrets(port=free_port()))
    assert result["success"] is False
    assert result["message"].startswith("no session with the server")


# Whoever answers otherwise


def _secrets(type_: str, engine: str, port: int, shell: ShellServer) -> dict[str, Any]:
    match type_:
        case "database":
            login = {"database": "shop", "username": "shop", "engine": engine}
            return {"host": "127.0.0.1", "port": port, "password": "right-password", **login}
        case "ssh":
            return shell.secrets(port=port)
    login = {"username": "shop", "password": "right-password"}
    return {"host": "127.0.0.1", "port": port, "use_tls": False, **login}


SERVERS = [("database", "postgresql"), ("database", "mysql"), ("smtp", ""), ("ssh", "")]


OTHERWISE = {
    "nothing": b"",
    "zeros": b"\0" * 4096,
    "ones": b"\xff" * 4096,
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "postgres wants kerberos": b"N" + b"R\0\0\0\x08\0\0\0\x02",
    "postgres cut short": b"N" + b"R\0\0\0\x04",
    "postgres unknown": b"NX\0\0\0\x05\0",
    "ssh cut short": b"SSH-2.0-x\r\n" + b"\0" * 64,
    "smtp out of range": b"220 ready\r\n250 AUTH PLAIN\r\n999 what\r\n",
    "mysql of zeros": b"J\0\0\0\x0a8.0.0\0" + b"\0" * 70,
    "mysql cut short": b"\x05\0\0\0\x0a8\0\0\0",
    "mysql without a number": b"\x05\0\0\0\x0ax\0\0\0",
}


CASES = [
    pytest.param(type_, engine, said, id=f"{engine or type_}: {name}")
    for type_, engine in SERVERS
    for name, said in OTHERWISE.items()
]


@pytest.mark.parametrize(("type_", "engine", "said"), CASES)
async def test_a_server_that_speaks_something_else_is_no_success(
    admin: Client,
    shell: ShellServer,
    monkeypatch: pytest.MonkeyPatch,
    type_: str,
    engine: str,
    said: bytes,
) -> None:
    monkeypatch.setattr(connection_tests, "_SECONDS", 2.0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        if said:
            await asyncio.wait_for(reader.read(65536), 0.05)

    async with talking(talk) as port:
        result = await _result(admin, type_, _secrets(type_, engine, port, shell))
    assert result["success"] is False


_ZEROS = """
import asyncio
from app.kit import databases
from app.kit.egress import Guard

async def main():
    async def talk(reader, writer):
        writer.write(bytes(64))
        await reader.read(65536)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    login = databases.Login(
        engine="postgresql",
        host="127.0.0.1",
        port=server.sockets[0].getsockname()[1],
        database="shop",
        username="shop",
        password="right-password",
        ssl_mode="disable",
    )
    try:
        await databases.read_server_version(Guard(["127.0.0.1"]), login, 1)
    except OSError:
        print("refused")

asyncio.run(main())
"""


def test_a_database_of_zeros_does_not_stop_the_process() -> None:
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", _ZEROS], cwd=root, capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"refused\n"


@pytest.mark.parametrize(("type_", "engine"), SERVERS)
async def test_a_server_that_keeps_silent_is_given_up(
    admin: Client,
    shell: ShellServer,
    monkeypatch: pytest.MonkeyPatch,
    type_: str,
    engine: str,
) -> None:
    monkeypatch.setattr(connection_tests, "_SECONDS", 0.3)
    released = asyncio.Event()

    async def talk(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await released.wait()

    async with talking(talk) as port:
        result = await _result(admin, type_, _secrets(type_, engine, port, shell))
        released.set()
    assert result["success"] is False
    assert 250 <= result["latency_ms"] < 3_000
