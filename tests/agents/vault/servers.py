"""Servers on loopback that connection tests log in to."""

import asyncio
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import asyncssh
import msgspec
from aiohttp import web
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from app.local.postgres import STOP, Postgres
from tests.peer import Handler, Peer, answering
from tests.ports import free_port

USER, PASSWORD = "shop", "right-password"


class TokenRequest(msgspec.Struct):
    """A token request as the server received it."""

    form: dict[str, str]
    authorization: str | None


Responder = Callable[[TokenRequest], web.Response]


def token_response(access_token: str, **more: Any) -> web.Response:
    body = {"access_token": access_token, "token_type": "bearer", "expires_in": 3600, **more}
    return web.json_response(body)


def error_response(status: int, error: str) -> web.Response:
    return web.json_response({"error": error}, status=status)


class TokenServer(Peer):
    """An authorization server. It issues a new token each time unless a test sets `respond`."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[TokenRequest] = []
        # While it is not set, the server accepts requests and holds its responses back.
        self.may_respond = asyncio.Event()
        self.reset()

    def reset(self) -> None:
        """For the next test."""
        self.requests.clear()
        self.respond: Responder = lambda _: token_response(f"token-{len(self.requests)}")
        self.may_respond.set()

    def routes(self) -> dict[str, Handler]:
        return {"POST /token": self._token}

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        token_request = TokenRequest(form, request.headers.get("Authorization"))
        self.requests.append(token_request)
        response = self.respond(token_request)
        await self.may_respond.wait()
        return response

    def secrets(self, **more: Any) -> dict[str, Any]:
        return {
            "client_id": "client",
            "client_secret": "planted-client-secret",
            "token_url": f"{self.url}/token",
            **more,
        }


class DatabaseServer:
    """A second Postgres that accepts only TCP connections with a password."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="parley-test-")
        root = Path(self._folder.name)
        self._server = Postgres(root / "postgres", root / "run", durable=False)
        self._log = root / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        await asyncio.to_thread(self._server.init)
        folder = self._server.folder
        with (folder / "postgresql.conf").open("a", encoding="utf-8") as config:
            config.write(f"listen_addresses = '127.0.0.1'\nport = {self.port}\n")
        (folder / "pg_hba.conf").write_text(
            "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n", encoding="utf-8"
        )
        self._process = self._server.start(self._log)
        connection = await self._connect()
        await connection.execute(f"CREATE USER {USER} PASSWORD '{PASSWORD}'")
        await connection.execute(f"CREATE DATABASE shop OWNER {USER}")
        await connection.close()

    async def _connect(self) -> asyncpg.Connection:
        for _ in range(600):
            with suppress(OSError, asyncpg.PostgresError):
                return await asyncpg.connect(
                    host=str(self._server.run_dir),
                    port=self.port,
                    user="parley",
                    database="postgres",
                )
            await asyncio.sleep(0.05)
        raise AssertionError(self._log.read_text())

    def close(self) -> None:
        if self._process is not None:
            self._process.send_signal(STOP)
            self._process.wait(30)
        self._folder.cleanup()

    def secrets(self, **more: Any) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "database": "shop",
            "username": USER,
            "password": PASSWORD,
            **more,
        }


class MailServer:
    """An SMTP server with one account."""

    def __init__(self) -> None:
        self.port = free_port()
        self.logins: list[bytes] = []

    def authenticate(self, *args: Any) -> AuthResult:
        login = args[-1]
        self.logins.append(login.login)
        is_correct = (login.login, login.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=is_correct, handled=False)

    def secrets(self, **more: Any) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "username": USER,
            "password": PASSWORD,
            "use_tls": False,
            **more,
        }


@asynccontextmanager
async def run_mail_server(**options: Any) -> AsyncIterator[MailServer]:
    server = MailServer()
    settings = {"authenticator": server.authenticate, "auth_require_tls": False, **options}
    controller = Controller(server, "127.0.0.1", server.port, **settings)
    await asyncio.to_thread(controller.start)
    try:
        yield server
    finally:
        await asyncio.to_thread(controller.stop)


class SshServer:
    """An SSH server that accepts one key."""

    def __init__(self) -> None:
        self.port = 0
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")

    def secrets(self, **more: Any) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "username": USER,
            "private_key": export_private_key(self.key),
            **more,
        }


def export_private_key(key: asyncssh.SSHKey, passphrase: str | None = None) -> str:
    format_name = "openssh" if passphrase is None else "pkcs8-pem"
    return key.export_private_key(format_name, passphrase).decode()


def export_public_key(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode()


@asynccontextmanager
async def run_ssh_server() -> AsyncIterator[SshServer]:
    server = SshServer()
    authorized_keys = asyncssh.import_authorized_keys(export_public_key(server.key))
    listener = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[server.host_key], authorized_client_keys=authorized_keys
    )
    server.port = listener.get_port()
    try:
        yield server
    finally:
        listener.close()
        await listener.wait_closed()


@asynccontextmanager
async def serve_response(status: int = 200, body: bytes = b"") -> AsyncIterator[str]:
    """Yields the URL of an HTTP server that answers every request in the same way."""

    async def respond(_request: web.Request) -> web.Response:
        return web.Response(status=status, body=body)

    async with answering(respond) as url:
        yield url


ConnectionHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@asynccontextmanager
async def serve_tcp(handle: ConnectionHandler) -> AsyncIterator[int]:
    """Yields the port of a TCP server with this handler."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await handle(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


_TLS_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)


@asynccontextmanager
async def serve_tls(server: int | Path, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Yields the port of a TLS proxy for a Postgres without TLS, on a port or a socket's path."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(8) == _TLS_REQUEST
        writer.write(b"S")
        await writer.start_tls(context)
        if isinstance(server, Path):
            inner_reader, inner_writer = await asyncio.open_unix_connection(server)
        else:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", server)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    async with serve_tcp(handle) as proxy_port:
        yield proxy_port
