"""What a request costs, by its method or its route."""

import re
from typing import Final

COSTS: Final = {"read": 1, "write": 2, "delete": 2, "execute": 5, "chat": 10}
_BY_METHOD = {
    "GET": "read",
    "HEAD": "read",
    "OPTIONS": "read",
    "POST": "write",
    "PUT": "write",
    "PATCH": "write",
    "DELETE": "delete",
}
_UNCOUNTED = re.compile(r"/(health/|metrics\Z|docs(/|\Z)|openapi\.json\Z|embed/)")
_SLASHES = re.compile(r"/{2,}")


def is_uncounted(method: str, path: str) -> bool:
    return method in {"GET", "HEAD"} and _UNCOUNTED.match(path) is not None


class CostTable:
    """What a request costs, by its method unless its route says `cost="chat"` or `"execute"`.

    Where an embed key is taken, its tenant pays, and the address it comes from only for knocking.
    """

    def __init__(self, special: list[tuple[str, str, str, bool]]) -> None:
        """`special` holds (method, path template, cost type, keyed) of the routes that differ."""
        self._costs = [
            (COSTS[kind], COSTS["read"] if keyed else COSTS[kind]) for _, _, kind, keyed in special
        ]
        self._pattern = re.compile(
            "|".join(f"({method} {_as_pattern(path)}/?\\Z)" for method, path, _, _ in special)
            or r"(?!)"
        )

    def of(self, method: str, path: str) -> tuple[int, int]:
        """For somebody who signed in, and for an address."""
        # The router takes // for /, and so must the price.
        if "//" in path:
            path = _SLASHES.sub("/", path)
        found = self._pattern.match(f"{method} {path}")
        if found is not None and found.lastindex is not None:
            return self._costs[found.lastindex - 1]
        units = COSTS[_BY_METHOD.get(method, "write")]
        return units, units


def _as_pattern(template: str) -> str:
    return re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(template))
