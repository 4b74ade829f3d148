"""Which web sites were found welcome, for answers that are given before anybody can ask again."""

from collections import OrderedDict
from typing import Any

_MOST = 10_000
_welcome: OrderedDict[tuple[str, str], None] = OrderedDict()


def open_to(state: dict[str, Any], path: str, origin: str) -> None:
    """The gate lets this site read whatever is answered from here on, errors included."""
    state["allowed_origin"] = origin
    _welcome[path, origin] = None
    _welcome.move_to_end((path, origin))
    if len(_welcome) > _MOST:
        _welcome.popitem(last=False)


def was_welcome(path: str, origin: str) -> bool:
    """True when this process let the site read this path before: it may read a 429 as well."""
    return (path, origin) in _welcome


def headers(origin: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"Retry-After, X-Request-ID, X-Correlation-ID"),
        (b"vary", b"Origin"),
    ]
