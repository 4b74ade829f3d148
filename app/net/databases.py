"""Connects to databases whose host a tenant chose, at an address that the guard has checked."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Literal

import aiomysql
import asyncpg
import msgspec

from app.net.egress import Guard
from app.net.postgres_relay import SessionTooLarge, TlsRefused, open_relay
from app.net.tls import named_context
from db.connection_use import check_wait

Engine = Literal["postgresql", "mysql"]
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
PORTS = {"postgresql": 5432, "mysql": 3306}
_VERIFIED = {"verify-ca", "verify-full"}
# What the clients raise when the peer is no server of their kind.
_PROTOCOL_ERRORS = (
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AssertionError,
    BufferError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
)


class Login(msgspec.Struct, frozen=True, kw_only=True):
    engine: Engine
    host: str
    port: int | None = None
    database: str
    username: str
    password: str
    ssl_mode: SslMode = "prefer"

    @property
    def real_port(self) -> int:
        return self.port or PORTS[self.engine]


@contextmanager
def _translate_protocol_errors() -> Iterator[None]:
    try:
        yield
    except _PROTOCOL_ERRORS as error:
        raise ConnectionError(f"the server cannot be understood: {error!r:.200}") from error


def _tls_options(login: Login) -> tuple[ssl.SSLContext | None, bool]:
    """Returns the TLS context, None for no TLS, and whether TLS is required."""
    if login.ssl_mode == "disable":
        return None, False
    context = named_context(login.host, verified=login.ssl_mode in _VERIFIED)
    return context, login.ssl_mode not in {"allow", "prefer"}


@asynccontextmanager
async def postgres(
    guard: Guard, login: Login, seconds: float, **settings: str
) -> AsyncIterator[asyncpg.Connection]:
    """Yields a connection; after an error it is terminated without waiting for the server."""
    check_wait("a database of a tenant")
    address = await guard.resolve_host(login.host, login.real_port)
    context, is_required = _tls_options(login)
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(seconds):
            relay = await stack.enter_async_context(
                open_relay(address, login.real_port, login.host, context, tls_required=is_required)
            )
        with _translate_protocol_errors():
            connection = await asyncpg.connect(
                host=relay.folder,
                user=login.username,
                password=login.password,
                database=login.database,
                ssl="disable",
                # No passwords from this machine's files.
                passfile="/dev/null",
                timeout=seconds,
                statement_cache_size=0,
                server_settings=settings or None,
            )
        try:
            yield connection
            await connection.close(timeout=2)
        except Exception as error:
            if relay.is_cut_off:
                raise SessionTooLarge("the server sent too much") from error
            raise
        finally:
            connection.terminate()


class _StrictMySql(aiomysql.Connection):  # type: ignore[misc]
    """Sends no password, not even a hashed one, to a server without TLS when TLS is required."""

    tls_required = False

    async def _request_authentication(self) -> None:
        if self.tls_required and not self.server_capabilities & _MYSQL_TLS:
            raise TlsRefused("the server speaks no TLS")
        await super()._request_authentication()


_MYSQL_TLS = 0x800


@asynccontextmanager
async def mysql(guard: Guard, login: Login, seconds: float) -> AsyncIterator[Any]:
    check_wait("a database of a tenant")
    address = await guard.resolve_host(login.host, login.real_port)
    context, is_required = _tls_options(login)
    connection = _StrictMySql(
        host=address,
        port=login.real_port,
        user=login.username,
        password=login.password,
        db=login.database,
        ssl=context,
        connect_timeout=seconds,
        local_infile=False,
        autocommit=False,
        charset="utf8mb4",
    )
    connection.tls_required = is_required
    try:
        with _translate_protocol_errors():
            await connection._connect()  # noqa: SLF001  # as the library's own `connect` does
        yield connection
    finally:
        connection.close()


async def read_server_version(guard: Guard, login: Login, seconds: float) -> str:
    """Logs in and returns the name and version of the server."""
    with _translate_protocol_errors():
        if login.engine == "postgresql":
            async with postgres(guard, login, seconds) as connection:
                return f"PostgreSQL {await connection.fetchval('SHOW server_version')}"
        async with mysql(guard, login, seconds) as connection, connection.cursor() as cursor:
            await cursor.execute("SELECT version()")
            (version,) = await cursor.fetchone()
            return f"MySQL {version}"
