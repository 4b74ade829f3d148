"""Logging in to databases whose host a tenant chose: to an address that the guard has checked."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiomysql
import asyncpg
import msgspec

from app.kit.egress import Guard

Engine = Literal["postgresql", "mysql"]
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
PORTS = {"postgresql": 5432, "mysql": 3306}
_VERIFIED = {"verify-ca", "verify-full"}


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


@asynccontextmanager
async def postgres(
    guard: Guard, login: Login, seconds: float, **settings: str
) -> AsyncIterator[asyncpg.Connection]:
    """A connection that is cut, not merely closed, when something goes wrong."""
    address = await guard.host(login.host, login.real_port)
    mode: Any = login.ssl_mode
    if login.ssl_mode in _VERIFIED:
        mode = named_context(login.host)
    elif login.ssl_mode == "require":
        mode = named_context(login.host, verified=False)
    connection = await asyncpg.connect(
        host=address,
        port=login.real_port,
        user=login.username,
        password=login.password,
        database=login.database,
        ssl=mode,
        # Nothing of ours: neither passwords nor certificates from this machine's files.
        passfile="/dev/null",
        direct_tls=False,
        timeout=seconds,
        statement_cache_size=0,
        server_settings=settings or None,
    )
    try:
        yield connection
        await connection.close(timeout=2)
    finally:
        connection.terminate()


@asynccontextmanager
async def mysql(guard: Guard, login: Login, seconds: float) -> AsyncIterator[Any]:
    address = await guard.host(login.host, login.real_port)
    context = None
    if login.ssl_mode not in {"disable", "allow", "prefer"}:
        context = named_context(login.host, verified=login.ssl_mode in _VERIFIED)
    connection = await aiomysql.connect(
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
    try:
        yield connection
    finally:
        connection.close()


async def greet(guard: Guard, login: Login, seconds: float) -> str:
    """Which server answers to this login."""
    if login.engine == "postgresql":
        async with postgres(guard, login, seconds) as connection:
            return f"PostgreSQL {await connection.fetchval('SHOW server_version')}"
    async with mysql(guard, login, seconds) as connection, connection.cursor() as cursor:
        await cursor.execute("SELECT version()")
        (version,) = await cursor.fetchone()
        return f"MySQL {version}"
