"""Logging in to databases whose host a tenant chose: to an address that the guard has checked."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Literal

import aiomysql
import asyncpg
import msgspec

from app.kit.egress import Guard
from app.kit.postgres_relay import TlsRefused, TooMuchSaid, relayed

Engine = Literal["postgresql", "mysql"]
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
PORTS = {"postgresql": 5432, "mysql": 3306}
_VERIFIED = {"verify-ca", "verify-full"}
# What the clients stumble over when something else answers than a server of their kind.
_GARBLED = (
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


class _NamedContext(ssl.SSLContext):
    """Checks the certificate for a name although the connection goes to an address."""

    name = ""

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        options["server_hostname"] = self.name
        return super().wrap_bio(*args, **options)


def named_context(host: str, *, verified: bool = True) -> ssl.SSLContext:
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.name = host
    if verified:
        context.load_default_certs()
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except _GARBLED as error:
        raise ConnectionError(f"the server cannot be understood: {error!r:.200}") from error


def _tls(login: Login) -> tuple[ssl.SSLContext | None, bool]:
    """How to speak TLS to the server, and whether nothing else will do."""
    if login.ssl_mode == "disable":
        return None, False
    context = named_context(login.host, verified=login.ssl_mode in _VERIFIED)
    return context, login.ssl_mode not in {"allow", "prefer"}


@asynccontextmanager
async def postgres(
    guard: Guard, login: Login, seconds: float, **settings: str
) -> AsyncIterator[asyncpg.Connection]:
    """A connection that is cut, not merely closed, when something goes wrong."""
    address = await guard.host(login.host, login.real_port)
    context, must = _tls(login)
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(seconds):
            relay = await stack.enter_async_context(
                relayed(address, login.real_port, login.host, context, must=must)
            )
        with _understood():
            connection = await asyncpg.connect(
                host=relay.folder,
                user=login.username,
                password=login.password,
                database=login.database,
                ssl="disable",
                # Nothing of ours: no passwords from this machine's files.
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
                raise TooMuchSaid("the server says too much") from error
            raise
        finally:
            connection.terminate()


class _StrictMySql(aiomysql.Connection):  # type: ignore[misc]
    """Where TLS must be, a server without it is not even told a scrambled password."""

    must_be_secret = False

    async def _request_authentication(self) -> None:
        if self.must_be_secret and not self.server_capabilities & _MYSQL_TLS:
            raise TlsRefused("the server speaks no TLS")
        await super()._request_authentication()


_MYSQL_TLS = 0x800


@asynccontextmanager
async def mysql(guard: Guard, login: Login, seconds: float) -> AsyncIterator[Any]:
    address = await guard.host(login.host, login.real_port)
    context, must = _tls(login)
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
    connection.must_be_secret = must
    try:
        with _understood():
            await connection._connect()  # noqa: SLF001  # as the library's own `connect` does
        yield connection
    finally:
        connection.close()


async def greet(guard: Guard, login: Login, seconds: float) -> str:
    """Which server answers to this login."""
    with _understood():
        if login.engine == "postgresql":
            async with postgres(guard, login, seconds) as connection:
                return f"PostgreSQL {await connection.fetchval('SHOW server_version')}"
        async with mysql(guard, login, seconds) as connection, connection.cursor() as cursor:
            await cursor.execute("SELECT version()")
            (version,) = await cursor.fetchone()
            return f"MySQL {version}"
