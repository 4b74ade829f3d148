"""The client's address, and which addresses are limited together."""

import ipaddress
from collections.abc import Sequence

from litestar.types import HTTPScope


class ClientAddresses:
    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._proxies = [ipaddress.ip_network(text, strict=False) for text in trusted_proxies]

    def of(self, scope: HTTPScope, forwarded_for: str | None) -> str:
        """A forwarded address counts only from a proxy that is trusted."""
        client = scope.get("client")
        address = client[0] if client else "unknown"
        if self._proxies and forwarded_for is not None:
            hops = [hop.strip() for hop in forwarded_for.split(",")]
            while hops and self._is_trusted(address):
                address = _without_port(hops.pop())
        return _normalize(address)

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed.version == net.version and parsed in net for net in self._proxies)


def _without_port(hop: str) -> str:
    """Some proxies write `address:port`, with brackets around an IPv6 address."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _normalize(address: str) -> str:
    """An address in its usual form; text that is no address becomes `unknown`."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def limited_together(address: str) -> str:
    """The key of the limiter: an IPv4 address, or the /64 that an IPv6 customer holds."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 6 and parsed.ipv4_mapped is None:  # noqa: PLR2004
        return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
