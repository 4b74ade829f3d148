"""CORS headers, and the origins that this process allowed.

The gate refuses rate limited requests before a handler can check their origin. It lets an origin
read such a response if an earlier request to the same path was allowed.
"""

import re
from collections import OrderedDict
from typing import Any, Protocol
from urllib.parse import urlsplit

_MAX_ORIGINS = 10_000
_DEFAULT_HEADERS = ("authorization", "content-type", "if-match", "if-none-match", "x-api-key")
_HEADER_LIST = re.compile(r"[A-Za-z0-9_-]+( *, *[A-Za-z0-9_-]+){0,63}\Z")
_ADDRESS = re.compile(r"https?://(localhost|\d+\.\d+\.\d+\.\d+|\[[0-9a-f:.]+\])(:\d+)?\Z")
# Keys are (path, origin), the least recently allowed first.
_allowed: OrderedDict[tuple[str, str], None] = OrderedDict()


class _Request(Protocol):
    @property
    def headers(self) -> Any: ...

    @property
    def scope(self) -> Any: ...

    @property
    def app(self) -> Any: ...


def origin_of(request: _Request) -> str | None:
    """Returns the Origin header. Several headers are joined, which matches no origin."""
    values = request.headers.getall("origin", [])
    return ", ".join(values) if values else None


def own_origins(request: _Request) -> set[str]:
    """Returns the origins of this instance: the public one, and the one that was called if it is an
    address. A name may be an attacker's that points here, with pages of its own.
    """
    own = urlsplit(request.app.state.services.settings.public_url)
    origins = {f"{own.scheme}://{own.netloc}"}
    called = called_origin(request)
    return origins | {called} if _ADDRESS.match(called) else origins


def called_origin(request: _Request) -> str:
    """Not parsed as an address: the header Host may be anything."""
    return f"{request.scope['scheme']}://{request.headers.get('host', '')}"


def page_origin(request: _Request) -> str | None:
    """Returns the origin of the page that sends the request. A browser leaves out the Origin header
    when it reads from the page's own server.
    """
    origin = origin_of(request)
    if origin is None and request.headers.get("sec-fetch-site") == "same-origin":
        return called_origin(request)
    return origin


def preflight_headers(request: _Request) -> dict[str, str]:
    """Allows the preflight of any origin; the request itself is checked when it comes."""
    origin = origin_of(request)
    if origin:
        request.scope["state"]["allowed_origin"] = origin
    header = request.headers.get("access-control-request-headers", "").lower()
    names = re.split(" *, *", header) if _HEADER_LIST.match(header) else []
    return {
        "access-control-allow-methods": "GET, POST",
        # These routes accept no cookies, so a site may send any header.
        "access-control-allow-headers": ", ".join(dict.fromkeys([*_DEFAULT_HEADERS, *names])),
        "access-control-max-age": "600",
    }


def allow_origin(state: dict[str, Any], path: str, origin: str) -> None:
    """Makes the gate send CORS headers for this origin with the response, errors included."""
    state["allowed_origin"] = origin
    _allowed[path, origin] = None
    _allowed.move_to_end((path, origin))
    if len(_allowed) > _MAX_ORIGINS:
        _allowed.popitem(last=False)


def was_allowed(path: str, origin: str) -> bool:
    """True when this process allowed the origin on this path before."""
    return (path, origin) in _allowed


def headers(origin: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"ETag, Retry-After, X-Request-ID, X-Correlation-ID"),
        (b"vary", b"Origin"),
    ]
