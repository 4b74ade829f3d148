"""The HTTP client for every URL that a tenant chose.

It connects only to addresses that the guard has checked; TLS still verifies the host name. It
follows redirects only on request and checks each hop again.
"""

import asyncio
import io
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDict
from yarl import URL

from app.net.failures import describe_failure
from app.net.guard import AllowList, BlockedAddress, EgressError, Guard, Resolve, is_public
from app.net.headers import is_reserved
from db.connection_use import check_wait

__all__ = [
    "AllowList",
    "Answer",
    "BlockedAddress",
    "Egress",
    "EgressError",
    "EgressTimeout",
    "Guard",
    "Resolve",
    "ResponseTooLarge",
    "custom_headers",
    "is_public",
]

MAX_BYTES = 5 * 1024 * 1024
TIMEOUT_SECONDS = 15.0
_MAX_PIECE_BYTES = 1024 * 1024
_REDIRECTS = {301, 302, 303, 307, 308}
# The only headers that a redirect to another origin receives.
_PUBLIC_HEADERS = {"accept", "accept-encoding", "accept-language", "content-type", "user-agent"}

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class EgressTimeout(EgressError):
    code = "timeout"


class ResponseTooLarge(EgressError):
    code = "output_too_large"


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes
    url: str


class _GuardedResolver(AbstractResolver):
    """Resolves through the guard, so that aiohttp connects only to checked addresses."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._guard.resolve_addresses(host, port)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
            if family in {socket.AF_UNSPEC, socket.AF_INET6 if ":" in address else socket.AF_INET}
        ]

    async def close(self) -> None:
        return


def custom_headers(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Returns a tenant's headers without invalid ones and those that only the service sets."""
    allowed: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        if _TOKEN.match(name) and not is_reserved(name) and not _CONTROL.search(value):
            allowed[name] = value
    return allowed


class Egress:
    """A pooled HTTP client behind the guard. One per process; the owner closes it."""

    def __init__(
        self, guard: Guard, *, limit: int = 200, per_host: int = 20, decompress: bool = True
    ) -> None:
        self.guard = guard
        self._decompress = decompress
        self._limit = limit
        self._per_host = per_host
        self._session: aiohttp.ClientSession | None = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=_GuardedResolver(self.guard),
                use_dns_cache=False,
                limit=self._limit,
                limit_per_host=self._per_host,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=self._decompress,
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str | URL,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        idle_seconds: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends one request without redirects and yields the response with its body unread.

        `idle_seconds` bounds the pause between two chunks. Connection failures are EgressErrors.
        """
        check_wait("a server")
        target = self.check_url(url)
        timeout = aiohttp.ClientTimeout(
            total=timeout_seconds,
            sock_connect=TIMEOUT_SECONDS if idle_seconds else None,
            sock_read=idle_seconds,
        )
        with _egress_errors(target, timeout):
            try:
                response = await self._client().request(
                    method,
                    target,
                    headers=headers,
                    data=_in_pieces(body),
                    allow_redirects=False,
                    timeout=timeout,
                    # aiohttp must not add a type: the caller names it, or there is no body.
                    skip_auto_headers=("Content-Type",),
                )
            except aiohttp.ClientError:
                raise
            except ValueError as error:
                raise EgressError(f"the request cannot be sent: {error}") from error
            async with response:
                yield response

    def check_url(self, url: str | URL) -> URL:
        return (
            self.guard.check_url(url) if isinstance(url, str) else self.guard.check_parsed_url(url)
        )

    async def request(
        self,
        method: str,
        url: str | URL,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        max_bytes: int = MAX_BYTES,
        redirects: int = 0,
    ) -> Answer:
        """Sends a request and returns the whole response. The timeout covers all redirects."""
        remaining_headers: CIMultiDict[str] = CIMultiDict(headers or {})
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        while True:
            seconds_left = deadline - asyncio.get_running_loop().time()
            if seconds_left <= 0:
                raise EgressTimeout(f"no answer within {timeout_seconds:g} s")
            async with self.open(
                method, url, headers=remaining_headers, body=body, timeout_seconds=seconds_left
            ) as response:
                location = response.headers.get("Location")
                if redirects <= 0 or response.status not in _REDIRECTS or not location:
                    content = await _read(response, max_bytes)
                    return Answer(response.status, dict(response.headers), content, str(url))
                redirects -= 1
                method, body = _after_redirect(method, body, response.status)
                url = _next_url(response.url, location, remaining_headers)


def _in_pieces(body: bytes | None) -> bytes | io.BytesIO | None:
    """A large body holds the event loop while aiohttp writes its bytes in one step."""
    return io.BytesIO(body) if body is not None and len(body) > _MAX_PIECE_BYTES else body


@contextmanager
def _egress_errors(target: URL, timeout: aiohttp.ClientTimeout) -> Iterator[None]:
    """Raises timeouts and aiohttp's errors as EgressError."""
    try:
        yield
    except TimeoutError as error:
        silence = f", or {timeout.sock_read:g} s of silence" if timeout.sock_read else ""
        raise EgressTimeout(f"no answer within {timeout.total:g} s{silence}") from error
    except aiohttp.ClientError as error:
        refusal = _find_egress_error(error)
        if refusal is not None:
            raise refusal from error
        raise EgressError(_describe_failure(error, target)) from error


def _describe_failure(error: aiohttp.ClientError, target: URL) -> str:
    """Says which address failed, and how. The address is the one that the tenant chose."""
    host, port = target.host or "", target.port
    address = f"{host}:{port}"
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return describe_failure(error.certificate_error, host, port)
        case aiohttp.ClientConnectorError():
            return describe_failure(error.os_error, host, port)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            return f"{address} closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return f"{address} broke off its answer"
    return f"{address} did not answer in HTTP: {type(error).__name__}"


def _next_url(current: URL, location: str, headers: CIMultiDict[str]) -> str:
    """Returns the target of a redirect. Removes private headers when it is another origin."""
    try:
        hop = URL(location)
        if hop.scheme and not hop.host:
            raise ValueError("no host")  # noqa: TRY301
        target = current.join(hop)
        is_other_origin = target.origin() != current.origin()
    except ValueError as error:
        raise BlockedAddress("the redirect leads to no valid URL") from error
    if is_other_origin:
        # Any other header may contain a credential.
        for name in [name for name in headers if name.lower() not in _PUBLIC_HEADERS]:
            del headers[name]
    return str(target)


def _after_redirect(method: str, body: bytes | None, status: int) -> tuple[str, bytes | None]:
    if status == 303 or (status in {301, 302} and method == "POST"):  # noqa: PLR2004
        return "GET", None
    return method, body


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_chunked(64 * 1024):
        content += chunk
        if len(content) > max_bytes:
            raise ResponseTooLarge(f"the answer is larger than {max_bytes} bytes")
    return bytes(content)


def _find_egress_error(error: BaseException) -> EgressError | None:
    """Returns the guard's own error from the chain of causes, if there is one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, EgressError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
