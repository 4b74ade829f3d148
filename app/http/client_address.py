"""The client's address, and the address or network that its requests are rate limited by."""

import ipaddress
from collections.abc import Sequence

from litestar.types import HTTPScope

# Proxies that a request passed; what precedes them in X-Forwarded-For is not looked at.
_MAX_HOPS = 32


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
        return any(parsed.version == net.version and parsed in net for net in self._proxies)


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
    """Returns the IPv4 address, or the /64 network of an IPv6 address, which one customer owns."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 6 and parsed.ipv4_mapped is None:  # noqa: PLR2004
        return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
