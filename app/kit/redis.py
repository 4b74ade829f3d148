"""Redis: the ordinary client, and a line for the one script that every request runs.

The line is a single connection that many requests share: calls are written as they come, several in
one packet, and answers arrive in order. It costs about a fifth of a call through the client's pool.
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


def connect(url: str, *, wait_seconds: float | None = 1.0) -> Redis:
    """`wait_seconds` None is for clients that block on purpose, like a queue's."""
    return Redis.from_url(
        url,
        socket_timeout=wait_seconds,
        socket_connect_timeout=_CONNECT_SECONDS,
        # One quick retry, for a connection that a restart left dead.
        retry=Retry(NoBackoff(), 1),
        health_check_interval=0,
    )


class ScriptFailed(RedisError):
    """Redis answers, but the script did not run to its end: a fault of ours."""


class _Link(asyncio.Protocol):
    """One open connection: what is asked, in order, and who waits for each answer."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._unsent: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (answer := self._reader.gets()) is not False:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(RedisConnectionError(f"the connection was lost: {exc}"))
        self._waiting.clear()

    def ask(self, *words: str | int | bytes) -> asyncio.Future[Any]:
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append(waiter)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(hiredis.pack_command(words))  # type: ignore[arg-type]
        return waiter

    def _flush(self) -> None:
        if self._transport is not None and self.open:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class LuaScriptClient:
    """Runs one Lua script over one shared connection, opened when needed."""

    def __init__(self, url: str, script: str) -> None:
        self._where: dict[str, Any] = dict(parse_url(url))
        self._script = script
        self._script_id = ""
        self._link: _Link | None = None
        self._opening: asyncio.Task[_Link] | None = None

    async def run(self, keys: tuple[str, ...], args: tuple[str | int, ...]) -> list[Any]:
        """The script's answer. Raises a RedisError, an OSError or a TimeoutError within seconds."""
        link = self._link
        if link is None or not link.open:
            link = await self._connected()
        answer = await self._ask(link, "EVALSHA", self._script_id, len(keys), *keys, *args)
        if isinstance(answer, hiredis.ReplyError) and str(answer).startswith("NOSCRIPT"):
            await self._ask(link, "SCRIPT", "LOAD", self._script)
            answer = await self._ask(link, "EVALSHA", self._script_id, len(keys), *keys, *args)
        if isinstance(answer, Exception):
            raise ScriptFailed(str(answer))
        found: list[Any] = answer
        return found

    async def _ask(self, link: _Link, *words: str | int | bytes) -> Any:
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await link.ask(*words)
        except TimeoutError:
            # Answers come in order: one that is late holds up all behind it.
            link.close()
            raise

    async def _connected(self) -> _Link:
        """One attempt that all who wait share: nobody queues behind the failures of others."""
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._connect())
        return await asyncio.shield(self._opening)

    async def _connect(self) -> _Link:
        async with asyncio.timeout(_CONNECT_SECONDS):
            link = await self._open()
        where = self._where
        if "password" in where:
            login = [where["username"]] if where.get("username") else []
            await self._must(link, "AUTH", *login, where["password"])
        if where.get("db"):
            await self._must(link, "SELECT", where["db"])
        self._script_id = (await self._must(link, "SCRIPT", "LOAD", self._script)).decode()
        self._link = link
        return link

    async def _open(self) -> _Link:
        loop, where = asyncio.get_running_loop(), self._where
        if "path" in where:
            _, link = await loop.create_unix_connection(_Link, where["path"])
            return link
        secure = where.get("connection_class") is SSLConnection
        _, link = await loop.create_connection(
            _Link,
            where.get("host", "localhost"),
            where.get("port", 6379),
            ssl=ssl.create_default_context() if secure else None,
        )
        return link

    async def _must(self, link: _Link, *words: str | int) -> Any:
        answer = await self._ask(link, *words)
        if isinstance(answer, Exception):
            link.close()
            raise RedisError(str(answer))
        return answer

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
