"""Requests to the servers of sources: through the egress guard, within their robots.txt, one at a
time with pauses, and only for what has changed.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import msgspec
from multidict import CIMultiDict
from yarl import URL

from app.net.egress import Answer, BlockedAddress, Egress, EgressError, ResponseTooLarge
from app.net.retry_after import parse_retry_after

from . import robots
from .failures import DocumentGone, DocumentSkipped, SyncFailed
from .robots import Robots

USER_AGENT: Final = "Parley/1 (reads the sources of documents)"
TIMEOUT_SECONDS: Final = 60.0
# Between two requests to a host whose robots.txt names no delay.
DELAY_SECONDS: Final = 0.2
_MAX_HOPS = 5
_MAX_SHOWN_CHARS = 200
_MAX_VALIDATOR_CHARS = 500
# A wait that a server asks for and that a sync keeps; after a longer one it fails.
_MAX_PAUSE_SECONDS = 20.0
_MAX_PAUSES = 5
_DEFAULT_PAUSE_SECONDS = 60.0
# A server that fails so often in a row is left alone until the next sync.
_MAX_FAILURES = 5
_OK, _NOT_MODIFIED = 200, 304
_GONE = {404, 410}
_THROTTLED = {429, 503}
_REDIRECTS = {301, 302, 303, 307, 308}
_CLIENT_ERROR, _SERVER_ERROR = 400, 500


class Validators(msgspec.Struct, frozen=True):
    """What a server said of the version that was read last."""

    etag: str | None = None
    last_modified: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value is not None}


class Page(msgspec.Struct, frozen=True):
    """What a server answered. `url` is where redirects have led."""

    url: str
    body: bytes
    headers: CIMultiDict[str]

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "")

    @property
    def validators(self) -> Validators:
        """Those that can be sent back."""
        return Validators(self._find("ETag"), self._find("Last-Modified"))

    def _find(self, name: str) -> str | None:
        value = self.headers.get(name, "")
        is_usable = value.isascii() and value.isprintable() and len(value) <= _MAX_VALIDATOR_CHARS
        return value if value and is_usable else None


NOTHING_KNOWN: Final = Validators()


class _Host:
    """A server that this sync talks to."""

    def __init__(self) -> None:
        self.robots: Robots | None = None
        self.delay_seconds = DELAY_SECONDS
        self.next_request_at = 0.0


class WebClient:
    """Reads addresses for one sync. `follows_robots` is False for interfaces of programs, which no
    crawler finds by itself.
    """

    def __init__(self, egress: Egress, *, max_bytes: int, follows_robots: bool = True) -> None:
        self._egress = egress
        self._max_bytes = max_bytes
        self._follows_robots = follows_robots
        self._hosts: dict[str, _Host] = {}
        self._pauses = 0
        self._failures = 0

    async def get(
        self,
        url: str,
        known: Validators = NOTHING_KNOWN,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
    ) -> Page | None:
        """Returns None when it is the version that is known. Raises DocumentSkipped, DocumentGone
        or SyncFailed.
        """
        sent = known.headers
        private, current = dict(headers or {}), url
        for _ in range(_MAX_HOPS + 1):
            if self._follows_robots:
                await self._check_robots(current)
            request = partial(_merge, sent, private)
            answer = await self._ask(current, request, max_bytes or self._max_bytes)
            location = CIMultiDict(answer.headers).get("Location")
            if answer.status not in _REDIRECTS or not location:
                return _read(answer)
            target = _join(current, location)
            if _origin(target) != _origin(current):
                private = {}
            current = target
        raise DocumentSkipped("is redirected too often")

    async def get_signed(
        self, url: URL, sign: Callable[[], Mapping[str, str]], max_bytes: int
    ) -> Page | None:
        """Like `get`, for an address that is sent as it is, since it is signed. `sign` returns the
        headers of a request at this moment. A redirect would need another signature.
        """

        def build() -> dict[str, str]:
            return {"User-Agent": USER_AGENT, **sign()}

        return _read(await self._ask(url, build, max_bytes))

    async def _ask(
        self, url: str | URL, build: Callable[[], Mapping[str, str]], max_bytes: int
    ) -> Answer:
        """Sends one request; repeats it after a pause that its server asks for."""
        while True:
            await self._wait_for_turn(str(url))
            answer = await self._request(url, build(), max_bytes)
            if answer.status not in _THROTTLED:
                return answer
            seconds = parse_retry_after(CIMultiDict(answer.headers).get("Retry-After"))
            await self._pause(answer.status, seconds)

    async def _pause(self, status: int, seconds: float | None) -> None:
        if seconds is None and status in _THROTTLED - {429}:
            raise self._failed(f"answered with status {status}")
        seconds = _DEFAULT_PAUSE_SECONDS if seconds is None else seconds
        self._pauses += 1
        if seconds > _MAX_PAUSE_SECONDS or self._pauses > _MAX_PAUSES:
            raise SyncFailed(f"answered with status {status}: too many requests", seconds)
        await asyncio.sleep(seconds)

    async def _request(self, url: str | URL, headers: Mapping[str, str], max_bytes: int) -> Answer:
        try:
            answer = await self._egress.request(
                "GET", url, headers=headers, timeout_seconds=TIMEOUT_SECONDS, max_bytes=max_bytes
            )
        except ResponseTooLarge:
            megabytes = max_bytes / (1024 * 1024)
            raise DocumentSkipped(f"is larger than {megabytes:g} MB") from None
        except BlockedAddress as error:
            raise DocumentSkipped(f"cannot be read: {error}") from None
        except EgressError as error:
            raise self._failed(f"cannot be read: {error}") from None
        if answer.status >= _SERVER_ERROR and answer.status not in _THROTTLED:
            raise self._failed(f"answered with status {answer.status}")
        self._failures = 0
        return answer

    def _failed(self, reason: str) -> DocumentSkipped | SyncFailed:
        self._failures += 1
        return SyncFailed(reason) if self._failures >= _MAX_FAILURES else DocumentSkipped(reason)

    async def _wait_for_turn(self, url: str) -> None:
        host = self._host_of(url)
        wait = host.next_request_at - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        host.next_request_at = time.monotonic() + host.delay_seconds

    def _host_of(self, url: str) -> _Host:
        return self._hosts.setdefault(_origin(url), _Host())

    async def _check_robots(self, url: str) -> None:
        host = self._host_of(url)
        if host.robots is None:
            host.robots = await self._read_robots(f"{_origin(url)}/robots.txt")
            host.delay_seconds = max(host.robots.delay_seconds, DELAY_SECONDS)
        parts = urlsplit(url)
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        if not host.robots.allows(path):
            raise DocumentSkipped("is not to be read by programs, says its robots.txt")

    async def _read_robots(self, url: str) -> Robots:
        """A site without one allows all. One that does not answer allows nothing."""
        for _ in range(_MAX_HOPS + 1):
            answer = await self._ask_for_robots(url)
            location = CIMultiDict(answer.headers).get("Location")
            if answer.status in _REDIRECTS and location:
                url = _join(url, location)
            elif answer.status == _OK:
                text = answer.body[: robots.MAX_BYTES].decode("utf-8", "replace")
                return await asyncio.to_thread(robots.parse, text)
            else:
                break
        return robots.ALLOW_ALL

    async def _ask_for_robots(self, url: str) -> Answer:
        try:
            return await self._ask(url, partial(_merge, {}), self._max_bytes)
        except DocumentSkipped as problem:
            raise DocumentSkipped(f"cannot be read, because {url} {problem}") from None


def _merge(*headers: Mapping[str, str]) -> dict[str, str]:
    merged = {"User-Agent": USER_AGENT}
    for part in headers:
        merged |= part
    return merged


def _read(answer: Answer) -> Page | None:
    if answer.status == _NOT_MODIFIED:
        return None
    if answer.status in _GONE:
        raise DocumentGone(f"answered with status {answer.status}")
    if answer.status != _OK:
        raise DocumentSkipped(f"answered with status {answer.status}")
    return Page(answer.url, answer.body, CIMultiDict(answer.headers))


def _join(url: str, location: str) -> str:
    try:
        target = URL(url).join(URL(location))
    except ValueError:
        raise DocumentSkipped("is redirected to what is not an address") from None
    return str(target)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def shorten(url: str) -> str:
    """Returns an address for messages."""
    return url if len(url) <= _MAX_SHOWN_CHARS else f"{url[:_MAX_SHOWN_CHARS]}…"
