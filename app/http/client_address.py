"""The client's address, and the address or network that its requests are rate limited by."""

import ipaddress
from collections.abc import Sequence

from litestar.types import HTTPScope

# Proxies that a request passed; what precedes them in X-Forwarded-For is not looked at.
_MAX_HOPS = 32
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class ClientAddresses:
    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._proxies = [ipaddress.ip_network(text, strict=False) for text in trusted_proxies]

    def resolve(self, scope: HTTPScope, forwarded_for: str | None) -> str:
        """Returns the client's address. X-Forwarded-For counts only from a trusted proxy."""
        client = scope.get("client")
        address = client[0] if client else "unknown"
        if self._proxies and forwarded_for is not None:
            hops = [hop.strip() for hop in forwarded_for.rsplit(",", _MAX_HOPS)[-_MAX_HOPS:]]
            while hops and self.is_trusted(address):
                address = _without_port(hops.pop())
        return _normalize(address)

    def is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        # A socket for both versions has mapped addresses.
        plain = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(plain.version == net.version and plain in net for net in self._proxies)


def _without_port(hop: str) -> str:
    """Strips the port that some proxies append, and the brackets of an IPv6 address."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _normalize(address: str) -> str:
    """Returns the canonical form of an address, without the zone that a link-local one may have, or
    `unknown` for any other text.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(getattr(parsed, "ipv4_mapped", None) or parsed).partition("%")[0]


def rate_limit_address(address: str) -> str:
    """Returns the IPv4 address, or the /64 network of an IPv6 address, which one customer owns. An
    IPv6 address that stands for an IPv4 address counts as that: its owner has many networks, or
    shares one with everybody.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    ipv4 = _find_ipv4(parsed)
    if ipv4 is not None:
        return str(ipv4)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False).network_address)


def _find_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address in a mapped, 6to4, Teredo or NAT64 address."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
