"""The web sites that may use an embed key: entries, and the origins that match them."""

import ipaddress
import re

import idna

ANY = "*"
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_ORIGIN = re.compile(
    r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::([0-9]{1,5}))?\Z"
)
_ENTRY = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<wildcard>\*\.)?(?P<host>\[[0-9a-f:.]+\]|[^\s/?#@:*\[\]]+)"
    r"(?::(?P<port>[0-9]{1,5}))?/?\Z"
)
_MIN_LABELS = 2
_MAX_HOST_CHARS = 253


def normalize(entry: str) -> str:
    """Returns the form of an entry that `is_allowed` compares. Raises ValueError with the reason
    when the entry is not valid.
    """
    text = entry.strip().lower()
    if text == ANY:
        return ANY
    match = _ENTRY.match(text)
    if match is None:
        raise ValueError("must be a host, *.host or an origin like https://shop.example.com")
    host, wildcard = _normalize_host(match["host"]), match["wildcard"] or ""
    if wildcard and (_is_address(host) or host.count(".") + 1 < _MIN_LABELS):
        raise ValueError("a wildcard needs a domain of at least two parts, like *.example.com")
    scheme, port = match["scheme"], match["port"]
    if port is not None:
        if not 0 < int(port) < 65536:  # noqa: PLR2004  # the range of ports
            raise ValueError("has a port that does not exist")
        port = str(int(port))
    if scheme and port == _DEFAULT_PORTS[scheme]:
        port = None
    return f"{scheme}://" * bool(scheme) + wildcard + host + (f":{port}" if port else "")


def _normalize_host(text: str) -> str:
    if text.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(text[1:-1])}]"
        except ValueError:
            raise ValueError("is not an IPv6 address") from None
    try:
        host = idna.encode(text, uts46=True).decode().rstrip(".")
    except idna.IDNAError:
        # Internal networks use host names with an underscore, which IDNA rejects.
        host = text.rstrip(".")
        if not re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", host):
            raise ValueError("is not a host name") from None
    if not host or len(host) > _MAX_HOST_CHARS:
        raise ValueError("is not a host name")
    return host


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def matching_entries(origin: str | None) -> set[str]:
    """Returns every entry that allows this origin; only `*` for `null` and invalid origins."""
    match = _ORIGIN.match(origin or "")
    # No entry has a longer host, and the entries of a host grow with the square of its length.
    if match is None or len(match[2]) > _MAX_HOST_CHARS:
        return {ANY}
    scheme, host, port = match.groups()
    if port == _DEFAULT_PORTS[scheme]:
        port = None
    hosts = [host]
    if not _is_address(host):
        labels = host.split(".")
        hosts += ["*." + ".".join(labels[start:]) for start in range(1, len(labels))]
    port_suffix = f":{port}" if port else ""
    # An entry without a scheme may name the port or leave it out.
    suffixes = {"", port_suffix or f":{_DEFAULT_PORTS[scheme]}"}
    return (
        {ANY}
        | {name + suffix for name in hosts for suffix in suffixes}
        | {f"{scheme}://{name}{port_suffix}" for name in hosts}
    )


def is_allowed(entries: list[str], origin: str | None) -> bool:
    """True when there are no entries, or when one of them matches the origin."""
    return not entries or not matching_entries(origin).isdisjoint(entries)
