"""Decides which addresses a request of a tenant may reach.

The guard resolves a name once and refuses it when one of its addresses is not global. The client
connects to the addresses that passed, so a DNS answer that changes between check and use has no
effect.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache

from yarl import URL

from app.kit import trace
from app.net.resolver import NameNotFound, NameResolver
from db.connection_use import check_wait

_SCHEMES = frozenset({"http", "https"})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]


# What an operator can do about it; the list names hosts and networks.
_WAY_OUT = "the operator of this instance can allow it with PARLEY_EGRESS_ALLOW"
_LOOPBACK = "127.0.0.1"


class EgressError(Exception):
    """The request got no response. `code` is stable; the message is for people."""

    code = "connection_error"


class BlockedAddress(EgressError):
    code = "blocked_address"


# Ranges that Python calls global although no public host is there, or that lead to other ranges.
_BLOCKED_NETWORKS = [
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
    """True for an address that a request of a tenant may reach."""
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
    if any(address.version == net.version and address in net for net in _BLOCKED_NETWORKS):
        return False
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    return address.is_global and not address.is_multicast


def find_character_problem(url: str) -> str | None:
    """The HTTP client drops these characters, so that the request would go to another address."""
    if " " in url or not url.isprintable():
        return "must not contain spaces or control characters"
    return None


class AllowList:
    """Hosts (`name`, `*.name`) and networks that the operator allows although they are private."""

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

    def allows_host(self, name: str) -> bool:
        name = name.lower().rstrip(".")
        return name in self._hosts or any(name.endswith(suffix) for suffix in self._suffixes)

    def allows_address(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address.version == net.version and address in net for net in self._networks)


class Guard:
    """Checks URLs and hosts that a tenant chose, for HTTP, databases, SMTP and SSH."""

    def __init__(self, allow: Sequence[str], resolve: Resolve | None = None) -> None:
        self.allow = AllowList(allow)
        self._names = NameResolver()
        self._resolve = resolve or self._names.resolve
        self._lookups: dict[tuple[str, str, int], asyncio.Future[list[str]]] = {}
        # Few URLs are used often. Only the syntax check is cached here; addresses are checked each
        # time.
        self.check_url = lru_cache(maxsize=4096)(self._check_url)
        self.problem_with = lru_cache(maxsize=4096)(self._problem_with)

    async def resolve_addresses(self, host: str, port: int) -> list[str]:
        """Returns all addresses of a host. Raises BlockedAddress when one of them is blocked."""
        try:
            addresses = await self._look_up(host, port)
        except NameNotFound as error:
            raise EgressError(f"{host} cannot be resolved: the name does not exist") from error
        except TimeoutError as error:
            reason = "no nameserver answered in time"
            raise EgressError(f"{host} cannot be resolved: {reason}") from error
        except (OSError, UnicodeError) as error:
            raise EgressError(f"{host} cannot be resolved") from error
        if not addresses:
            raise EgressError(f"{host} has no address")
        if not self.allow.allows_host(host):
            for address in addresses:
                if not is_public(address) and not self.allow.allows_address(address):
                    raise BlockedAddress(f"{host} leads to a private address; {_WAY_OUT}")
        return addresses

    async def _look_up(self, host: str, port: int) -> list[str]:
        """Concurrent calls of one tenant for the same host share one lookup. Tenants share none,
        because a lookup may wait until its tenant may start another.
        """
        check_wait("a nameserver")
        key = (trace.current_tenant(), host, port)
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = asyncio.ensure_future(self._resolve(host, port))
            self._lookups[key] = lookup
            lookup.add_done_callback(lambda _task: self._lookups.pop(key, None))
        return await asyncio.shield(lookup)

    async def close(self) -> None:
        await self._names.close()

    def _check_url(self, text: str) -> URL:
        """Returns the parsed URL. Raises BlockedAddress when no request may use it."""
        try:
            url = URL(text)
        except ValueError as error:
            raise BlockedAddress("the address is not a valid URL") from error
        return self.check_parsed_url(url)

    def check_parsed_url(self, url: URL) -> URL:
        """Like `check_url`, for a URL whose path is already encoded and must not change."""
        if url.scheme not in _SCHEMES or not url.host:
            raise BlockedAddress("the address must start with http:// or https://")
        if url.user is not None or url.password is not None:
            raise BlockedAddress("the address must not carry a user name or password")
        # aiohttp connects to an IP address in any notation without calling the resolver.
        address = _LOOPBACK if _is_localhost(url.host) else _parse_address(url.host)
        if address is not None and not self._allows_literal(address, url.host):
            raise BlockedAddress(f"{url.host} is not a public address; {_WAY_OUT}")
        return url

    def _allows_literal(self, address: str, host: str) -> bool:
        return (
            is_public(address) or self.allow.allows_address(address) or self.allow.allows_host(host)
        )

    def plain_http_allowed(self, url: URL) -> bool:
        host = url.host or ""
        return self.allow.allows_host(host) or self.allow.allows_address(host)

    def _problem_with(self, text: str, *, allow_http: bool = False) -> str | None:
        """Returns why a URL cannot be saved, or None. `allow_http`: no secret is sent there."""
        try:
            url = self.check_url(text)
        except BlockedAddress as error:
            return str(error)
        if url.scheme == "http" and not (allow_http or self.plain_http_allowed(url)):
            return "must start with https://"
        return None

    async def resolve_host(self, name: str, port: int) -> str:
        """Returns one checked address of a host, for protocols other than HTTP."""
        literal = _parse_address(name)
        if literal is not None:
            if self._allows_literal(literal, name):
                return literal
            raise BlockedAddress(f"{name} is not a public address; {_WAY_OUT}")
        if not name or "/" in name or "\0" in name:
            raise BlockedAddress("the host is not a host name")
        return (await self.resolve_addresses(name, port))[0]


def _is_localhost(host: str) -> bool:
    """These names always lead to this machine (RFC 6761), so that no lookup is needed."""
    return f".{host.rstrip('.').lower()}".endswith(".localhost")


def _parse_address(host: str) -> str | None:
    """Returns the IP address that a host is, also in the `inet_aton` notations 0x7f.1 and
    2130706433, or None for a name.
    """
    host = host.rstrip(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None
