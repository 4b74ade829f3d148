"""Redis: the ordinary client, and a faster one for the Lua script that every request runs.

The script client has one connection that all requests share: it sends several calls in one packet,
and replies arrive in order. A call costs about a fifth of one through the ordinary client's pool.
"""

import asyncio
import ssl
from collections import deque
from typing import Any

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

_CALL_SECONDS = 1.0
_CONNECT_SECONDS = 0.5
_MAX_CONNECTIONS = 100


def connect(
    url: str, *, wait_seconds: float | None = 1.0, max_connections: int | None = None
) -> Redis:
    """`wait_seconds` limits the wait for a reply. None is for clients that block on purpose, like
    those of a queue: their callers limit the time of whole operations. A client has at most 100
    connections unless `max_connections` is set.
    """
    return Redis.from_url(
        url,
        socket_timeout=wait_seconds,
        socket_connect_timeout=_CONNECT_SECONDS,
        max_connections=max_connections or _MAX_CONNECTIONS,
        # One immediate retry, because a restart of Redis leaves dead connections.
        retry=Retry(NoBackoff(), 1),
        health_check_interval=0,
        # Redis is not told the client's version, which would be looked up for every connection.
        driver_info=None,
    )


class ScriptFailed(RedisError):
    """Redis replied with an error of the script, which is a bug in Parley."""


class _Connection(asyncio.Protocol):
    """One connection with the callers that wait for replies, in the order of their calls."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._unsent: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(RedisConnectionError(f"the connection was lost: {exc}"))
        self._waiting.clear()

    def call(self, *words: str | int | bytes) -> asyncio.Future[Any]:
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append(waiter)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(hiredis.pack_command(words))  # type: ignore[arg-type]
        return waiter

    def _flush(self) -> None:
        if self._transport is not None and self.is_open:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class LuaScriptClient:
    """Runs one Lua script over one shared connection, opened when needed."""

    def __init__(self, url: str, script: str) -> None:
        self._options: dict[str, Any] = dict(parse_url(url))
        self._script = script
        self._script_id = ""
        self._connection: _Connection | None = None
        self._opening: asyncio.Task[_Connection] | None = None

    async def run(self, keys: tuple[str, ...], args: tuple[str | int, ...]) -> list[Any]:
        """Returns the script's reply. Raises RedisError, OSError or TimeoutError within seconds."""
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._connect_once()
        reply = await self._call(connection, "EVALSHA", self._script_id, len(keys), *keys, *args)
        if isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT"):
            await self._call(connection, "SCRIPT", "LOAD", self._script)
            reply = await self._call(
                connection, "EVALSHA", self._script_id, len(keys), *keys, *args
            )
        if isinstance(reply, Exception):
            raise ScriptFailed(str(reply))
        values: list[Any] = reply
        return values

    async def _call(self, connection: _Connection, *words: str | int | bytes) -> Any:
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await connection.call(*words)
        except TimeoutError:
            # Replies come in order: a late one delays all that follow.
            connection.close()
            raise

    async def _connect_once(self) -> _Connection:
        """Connects; concurrent callers share one attempt instead of queueing their own."""
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._connect())
        return await asyncio.shield(self._opening)

    async def _connect(self) -> _Connection:
        async with asyncio.timeout(_CONNECT_SECONDS):
            connection = await self._open()
        options = self._options
        if "password" in options:
            login = [options["username"]] if options.get("username") else []
            await self._call_or_raise(connection, "AUTH", *login, options["password"])
        if options.get("db"):
            await self._call_or_raise(connection, "SELECT", options["db"])
        self._script_id = (
            await self._call_or_raise(connection, "SCRIPT", "LOAD", self._script)
        ).decode()
        self._connection = connection
        return connection

    async def _open(self) -> _Connection:
        loop, options = asyncio.get_running_loop(), self._options
        if "path" in options:
            _, connection = await loop.create_unix_connection(_Connection, options["path"])
            return connection
        is_secure = options.get("connection_class") is SSLConnection
        _, connection = await loop.create_connection(
            _Connection,
            options.get("host", "localhost"),
            options.get("port", 6379),
            ssl=ssl.create_default_context() if is_secure else None,
        )
        return connection

    async def _call_or_raise(self, connection: _Connection, *words: str | int) -> Any:
        reply = await self._call(connection, *words)
        if isinstance(reply, Exception):
            connection.close()
            raise RedisError(str(reply))
        return reply

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
