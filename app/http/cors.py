"""CORS headers, and the origins that this process allowed.

The gate refuses rate limited requests before a handler can check their origin. It lets an origin
read such a response if an earlier request to the same path was allowed.
"""

from collections import OrderedDict
from typing import Any

_MAX_ORIGINS = 10_000
# Keys are (path, origin), the least recently allowed first.
_allowed: OrderedDict[tuple[str, str], None] = OrderedDict()


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
        (b"access-control-expose-headers", b"Retry-After, X-Request-ID, X-Correlation-ID"),
        (b"vary", b"Origin"),
    ]
