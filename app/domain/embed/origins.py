"""From which web sites an embed key may be used: entries, and the origins that match them."""

import ipaddress
import re

import idna

ANY = "*"
_PORTS = {"http": "80", "https": "443"}
_ORIGIN = re.compile(
    r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::([0-9]{1,5}))?\Z"
)
_ENTRY = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<wild>\*\.)?(?P<host>\[[0-9a-f:.]+\]|[^\s/?#@:*\[\]]+)"
    r"(?::(?P<port>[0-9]{1,5}))?/?\Z"
)
_MIN_LABELS = 2
_MAX_CHARS = 253


def normalize(entry: str) -> str:
    """An entry in the one form that is compared; raises a ValueError that says what is wrong."""
    text = entry.strip().lower()
    if text == ANY:
        return ANY
    found = _ENTRY.match(text)
    if found is None:
        raise ValueError("must be a host, *.host or an origin like https://shop.example.com")
    host = _host(found["host"])
    if found["wild"] and (_is_address(host) or host.count(".") + 1 < _MIN_LABELS):
        raise ValueError("a wildcard needs a domain of at least two parts, like *.example.com")
    scheme, port = found["scheme"], found["port"]
    if port is not None:
        if not 0 < int(port) < 65536:  # noqa: PLR2004  # what ports there are
            raise ValueError("has a port that does not exist")
        port = str(int(port))
    if scheme and port == _PORTS[scheme]:
        port = None
    return (
        f"{scheme}://" * bool(scheme) + (found["wild"] or "") + host + (f":{port}" if port else "")
    )


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(text[1:-1])}]"
        except ValueError:
            raise ValueError("is not an IPv6 address") from None
    try:
        host = idna.encode(text, uts46=True).decode().rstrip(".")
    except idna.IDNAError:
        # Host names with an underscore are no domain names, but exist inside networks.
        host = text.rstrip(".")
        if not re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", host):
            raise ValueError("is not a host name") from None
    if not host or len(host) > _MAX_CHARS:
        raise ValueError("is not a host name")
    return host


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def matching(origin: str | None) -> set[str]:
    """Every entry that would let this origin in. `null` and what is no origin match `*` alone."""
    found = _ORIGIN.match(origin or "")
    if found is None:
        return {ANY}
    scheme, host, port = found.groups()
    if port == _PORTS[scheme]:
        port = None
    hosts = [host]
    if not _is_address(host):
        labels = host.split(".")
        hosts += ["*." + ".".join(labels[start:]) for start in range(1, len(labels))]
    ends = {""} | ({f":{port}"} if port else {f":{_PORTS[scheme]}"})
    exact = f":{port}" if port else ""
    return (
        {ANY}
        | {name + end for name in hosts for end in ends}
        | {f"{scheme}://{name}{exact}" for name in hosts}
    )


def is_allowed(entries: list[str], origin: str | None) -> bool:
    """No entries: no rule. Otherwise the origin must be there and among them."""
    return not entries or not matching(origin).isdisjoint(entries)
