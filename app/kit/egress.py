"""The only way out for addresses that a tenant chose.

A name is resolved once; every address that is not global is refused; the connection goes to an
address that was checked, so a name that changes its mind between check and use gains nothing. TLS
still checks the name. Redirects are followed only when asked for, each hop checked again.
"""

import asyncio
import ipaddress
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import lru_cache, partial
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDict
from yarl import URL

MAX_BYTES = 5 * 1024 * 1024
LOOKUP_SECONDS = 5.0
_LOOKUPS_OF_DOMAIN = 8
TIMEOUT_SECONDS = 15.0
_REDIRECTS = {301, 302, 303, 307, 308}
_OURS = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}
_HARMLESS = {"accept", "accept-encoding", "accept-language", "content-type", "user-agent"}
_DEFAULT_PORTS = {"http": 80, "https": 443}

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]


class EgressError(Exception):
    """The request did not get an answer. `code` is stable; the message is for people."""

    code = "connection_error"


class BlockedAddress(EgressError):
    code = "blocked_address"


class EgressTimeout(EgressError):
    code = "timeout"


class ResponseTooLarge(EgressError):
    code = "output_too_large"


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes
    url: str


# Ranges that Python calls global although no public host is there, or that lead to others.
_NEVER = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "168.63.129.16/32",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/3",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
]
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")


def is_public(text: str) -> bool:
    """True for an address that a request from a tenant may reach."""
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
    if any(address.version == net.version and address in net for net in _NEVER):
        return False
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    return address.is_global and not address.is_multicast


class AllowList:
    """Hosts (`name`, `*.name`) and networks that the operator admits although they are private."""

    def __init__(self, items: Sequence[str]) -> None:
        self._hosts: set[str] = set()
        self._suffixes: list[str] = []
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for item in items:
            try:
                self._networks.append(ipaddress.ip_network(item, strict=False))
            except ValueError:
                name = item.lower().rstrip(".")
                if name.startswith("*."):
                    self._suffixes.append(name[1:])
                else:
                    self._hosts.add(name)

    def host(self, name: str) -> bool:
        name = name.lower().rstrip(".")
        return name in self._hosts or any(name.endswith(suffix) for suffix in self._suffixes)

    def address(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address.version == net.version and address in net for net in self._networks)


# Looking up names blocks a thread for as long as a nameserver likes; these are for nothing else.
_lookups = ThreadPoolExecutor(max_workers=64, thread_name_prefix="names")


class Names:
    """Looks names up. One domain, whose nameserver may never answer, gets a few threads at most,
    and others' names are found meanwhile.
    """

    def __init__(self) -> None:
        self._domains: dict[str, asyncio.Semaphore] = {}
        self._busy: Counter[str] = Counter()

    async def resolve(self, host: str, port: int) -> list[str]:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = await asyncio.shield(await self._begun(host, port))
        except TimeoutError:
            raise OSError(f"no nameserver knew {host} in time") from None
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def _begun(self, host: str, port: int) -> asyncio.Future[list[Any]]:
        domain = _domain_of(host)
        place = self._domains.setdefault(domain, asyncio.Semaphore(_LOOKUPS_OF_DOMAIN))
        self._busy[domain] += 1
        try:
            await place.acquire()
        except BaseException:
            self._leave(domain)
            raise
        asked = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        running = asyncio.get_running_loop().run_in_executor(_lookups, asked)
        running.add_done_callback(partial(self._ended, domain))
        return running

    def _ended(self, domain: str, running: asyncio.Future[list[Any]]) -> None:
        if not running.cancelled():
            # Nobody may be left who wants to know.
            running.exception()
        self._domains[domain].release()
        self._leave(domain)

    def _leave(self, domain: str) -> None:
        self._busy[domain] -= 1
        if not self._busy[domain]:
            del self._busy[domain], self._domains[domain]


def _domain_of(host: str) -> str:
    """What somebody registered, as far as one can tell: `shop.co.uk`, `example.com`."""
    labels = host.lower().rstrip(".").split(".")
    short = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3  # noqa: PLR2004
    return ".".join(labels[-3:] if short else labels[-2:])


class _CheckedResolver(AbstractResolver):
    """Hands aiohttp only addresses that passed the check, so it connects to no other."""

    def __init__(self, guard: "Guard") -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._guard.addresses(host, port)
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


class Guard:
    """Decides where a tenant's address may lead. Database and SMTP hosts ask it, too."""

    def __init__(self, allow: Sequence[str], resolve: Resolve | None = None) -> None:
        self.allow = AllowList(allow)
        self._resolve = resolve or Names().resolve
        self._looking: dict[tuple[str, int], asyncio.Future[list[str]]] = {}
        # The same few addresses are called again and again; names are resolved each time anyway.
        self.check_url = lru_cache(maxsize=4096)(self._check_url)
        self.problem_with = lru_cache(maxsize=4096)(self._problem_with)

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host, all of them checked; one that is not allowed refuses all."""
        try:
            found = await self._looked_up(host, port)
        except (OSError, UnicodeError) as error:
            raise EgressError(f"{host} cannot be resolved") from error
        if not found:
            raise EgressError(f"{host} has no address")
        if not self.allow.host(host):
            for address in found:
                if not is_public(address) and not self.allow.address(address):
                    raise BlockedAddress(f"{host} leads to an address that is not public")
        return found

    async def _looked_up(self, host: str, port: int) -> list[str]:
        """Who asks for the same name at the same time shares one look."""
        running = self._looking.get((host, port))
        if running is None:
            running = asyncio.ensure_future(self._resolve(host, port))
            self._looking[host, port] = running
            running.add_done_callback(lambda _task: self._looking.pop((host, port), None))
        return await asyncio.shield(running)

    def _check_url(self, text: str) -> URL:
        """The parsed URL, or a refusal of what no request may name."""
        try:
            url = URL(text)
        except ValueError as error:
            raise BlockedAddress("the address is not a valid URL") from error
        return self.checked(url)

    def checked(self, url: URL) -> URL:
        """For an address whose path is encoded already and must stay as it is."""
        if url.scheme not in _DEFAULT_PORTS or not url.host:
            raise BlockedAddress("the address must start with http:// or https://")
        if url.user is not None or url.password is not None:
            raise BlockedAddress("the address must not carry a user name or password")
        # aiohttp connects to an address in any spelling without asking the resolver.
        address = _address_in(url.host)
        if address is not None and not (
            is_public(address) or self.allow.address(address) or self.allow.host(url.host)
        ):
            raise BlockedAddress(f"{url.host} is not a public address")
        return url

    def plain_http_allowed(self, url: URL) -> bool:
        host = url.host or ""
        return self.allow.host(host) or self.allow.address(host)

    def _problem_with(self, text: str, *, plain: bool = False) -> str | None:
        """Why an address cannot be saved. `plain`: nothing secret is sent there."""
        try:
            url = self.check_url(text)
        except BlockedAddress as error:
            return str(error)
        if url.scheme == "http" and not (plain or self.plain_http_allowed(url)):
            return "must start with https://"
        return None

    async def host(self, name: str, port: int) -> str:
        """One checked address of a host that something other than HTTP connects to."""
        literal = _address_in(name)
        if literal is not None:
            if is_public(literal) or self.allow.address(literal) or self.allow.host(name):
                return literal
            raise BlockedAddress(f"{name} is not a public address")
        if not name or "/" in name or "\0" in name:
            raise BlockedAddress("the host is not a host name")
        return (await self.addresses(name, port))[0]


def _address_in(host: str) -> str | None:
    """The address that a host spells: plainly, or as `inet_aton` reads 0x7f.1 and 2130706433."""
    host = host.rstrip(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None


def custom_headers(given: Mapping[str, str]) -> CIMultiDict[str]:
    """A tenant's own headers, less those that are ours to set."""
    kept: CIMultiDict[str] = CIMultiDict()
    for name, value in given.items():
        lower = name.lower().strip()
        if lower in _OURS or lower.startswith(("x-service-", "webhook-")):
            continue
        if not _TOKEN.match(name) or _CONTROL.search(value):
            continue
        kept[name] = value
    return kept


class Egress:
    """A pooled client behind the guard. One per process; close it at the end."""

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
                resolver=_CheckedResolver(self.guard),
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
        """One request, no redirect, the body still to be read. Errors of the way are ours.

        `idle_seconds` is for answers that take long as a whole: the longest silence in between.
        """
        target = self.guard.check_url(url) if isinstance(url, str) else self.guard.checked(url)
        timeout = aiohttp.ClientTimeout(
            total=timeout_seconds,
            sock_connect=TIMEOUT_SECONDS if idle_seconds else None,
            sock_read=idle_seconds,
        )
        try:
            async with AsyncExitStack() as stack:
                try:
                    asked = self._client().request(
                        method,
                        target,
                        headers=headers,
                        data=body,
                        allow_redirects=False,
                        timeout=timeout,
                        # Who sends something says what it is; nothing has no type.
                        skip_auto_headers=("Content-Type",),
                    )
                    response = await stack.enter_async_context(asked)
                except aiohttp.ClientError:
                    raise
                except ValueError as error:
                    raise EgressError(f"the request cannot be sent: {error}") from error
                yield response
        except TimeoutError as error:
            silence = f", or {idle_seconds:g} s of silence" if idle_seconds else ""
            raise EgressTimeout(f"no answer within {timeout_seconds:g} s{silence}") from error
        except aiohttp.ClientError as error:
            blocked = _cause(error, EgressError)
            if blocked is not None:
                raise blocked from error
            raise EgressError(f"{target.host}: {type(error).__name__}") from error

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
        """One request and its whole answer; the time is for all hops together."""
        sent: CIMultiDict[str] = CIMultiDict(headers or {})
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        while True:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise EgressTimeout(f"no answer within {timeout_seconds:g} s")
            async with self.open(
                method, url, headers=sent, body=body, timeout_seconds=left
            ) as response:
                location = response.headers.get("Location")
                if redirects <= 0 or response.status not in _REDIRECTS or not location:
                    content = await _read(response, max_bytes)
                    return Answer(response.status, dict(response.headers), content, str(url))
                redirects -= 1
                method, body = _after_redirect(method, body, response.status)
                url = _next_url(response.url, location, sent)


def _next_url(current: URL, location: str, headers: CIMultiDict[str]) -> str:
    """Where a redirect leads; what was meant for one host is not shown to another."""
    try:
        hop = URL(location)
        if hop.scheme and not hop.host:
            raise ValueError("no host")  # noqa: TRY301
        target = current.join(hop)
        elsewhere = target.origin() != current.origin()
    except ValueError as error:
        raise BlockedAddress("the redirect leads to no valid URL") from error
    if elsewhere:
        # Any header may be somebody's key; only what says nothing about the caller goes along.
        for name in [name for name in headers if name.lower() not in _HARMLESS]:
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


def _cause(error: BaseException, kind: type[EgressError]) -> EgressError | None:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, kind):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
