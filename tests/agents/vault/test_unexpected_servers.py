"""Connection tests against servers that speak another protocol or do not answer."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from app.domain.agents.vault import connection_tests
from tests.agents.vault.connections import check_connection
from tests.agents.vault.servers import ConnectionHandler, SshServer, serve_tcp
from tests.lengths import IS_LONG
from tests.processes import ROOT
from tests.world import World

pytestmark = pytest.mark.usefixtures("scripts_here")


def _build_secrets(type_: str, engine: str, port: int, ssh_server: SshServer) -> dict[str, Any]:
    match type_:
        case "database":
            login = {"database": "shop", "username": "shop", "engine": engine}
            return {"host": "127.0.0.1", "port": port, "password": "right-password", **login}
        case "ssh":
            return ssh_server.secrets(port=port)
    login = {"username": "shop", "password": "right-password"}
    return {"host": "127.0.0.1", "port": port, "use_tls": False, **login}


SERVER_TYPES = [("database", "postgresql"), ("database", "mysql"), ("smtp", ""), ("ssh", "")]
UNEXPECTED_REPLIES = {
    "nothing": b"",
    "zeros": b"\0" * 4096,
    "ones": b"\xff" * 4096,
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "postgresql wants kerberos": b"N" + b"R\0\0\0\x08\0\0\0\x02",
    "postgresql cut short": b"N" + b"R\0\0\0\x04",
    "postgresql unknown": b"NX\0\0\0\x05\0",
    "ssh cut short": b"SSH-2.0-x\r\n" + b"\0" * 64,
    "smtp out of range": b"220 ready\r\n250 AUTH PLAIN\r\n999 what\r\n",
    "mysql of zeros": b"J\0\0\0\x0a8.0.0\0" + b"\0" * 70,
    "mysql cut short": b"\x05\0\0\0\x0a8\0\0\0",
    "mysql without a number": b"\x05\0\0\0\x0ax\0\0\0",
}


def _list_replies(protocol: str) -> list[str]:
    """Returns the replies of no protocol and of this one; in long runs, those of all protocols."""
    names = {"nothing", "zeros", "http"}
    return [
        name for name in UNEXPECTED_REPLIES if IS_LONG or name in names or name.startswith(protocol)
    ]


def _answer(reply: bytes) -> ConnectionHandler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await writer.drain()
        if reply:
            await asyncio.wait_for(reader.read(65536), 0.05)

    return handle


async def test_a_server_with_another_protocol_fails_the_test(
    world: World,
    ssh_server: SshServer,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.setattr(connection_tests, "_TIMEOUT_SECONDS", 2.0)
    for type_, engine in SERVER_TYPES:
        for name in _list_replies(engine or type_):
            admin = await world.user("tenant_admin")
            with subtests.test(name, server=engine or type_):
                async with serve_tcp(_answer(UNEXPECTED_REPLIES[name])) as port:
                    result = await check_connection(
                        admin, type_, _build_secrets(type_, engine, port, ssh_server)
                    )
                assert result["success"] is False


_ZEROS_SCRIPT = """
import asyncio
from app.net import databases
from app.net.egress import Guard

async def main():
    async def send_zeros(reader, writer):
        writer.write(bytes(64))
        await reader.read(65536)
        writer.close()

    server = await asyncio.start_server(send_zeros, "127.0.0.1", 0)
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


def test_a_server_that_sends_zeros_does_not_block_the_process() -> None:
    process = subprocess.run(
        [sys.executable, "-c", _ZEROS_SCRIPT], cwd=ROOT, capture_output=True, timeout=60, check=True
    )
    assert process.stdout == b"refused\n"


async def test_a_server_that_does_not_answer_ends_in_a_timeout(
    world: World, ssh_server: SshServer, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(connection_tests, "_TIMEOUT_SECONDS", 0.3)
    may_close = asyncio.Event()

    async def handle(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await may_close.wait()

    async with serve_tcp(handle) as port:
        for type_, engine in SERVER_TYPES:
            admin = await world.user("tenant_admin")
            with subtests.test(engine or type_):
                secrets = _build_secrets(type_, engine, port, ssh_server)
                result = await check_connection(admin, type_, secrets)
                assert result["success"] is False
                assert 250 <= result["latency_ms"] < 3_000
        may_close.set()
