"""The cost of a request in rate limit units, by its method or its route."""

import re
from collections.abc import Sequence
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
_UNCOUNTED = re.compile(r"/(health/|docs(/|\Z)|openapi\.json\Z|assets/|embed/[^/]+\.js\Z)")
_SLASHES = re.compile(r"/{2,}")


def is_uncounted(method: str, path: str) -> bool:
    return method in {"GET", "HEAD"} and _UNCOUNTED.match(path) is not None


class CostTable:
    """The cost of a request, by its method unless its route says `cost="chat"` or `"execute"`.

    On routes with an embed key, the tenant of the key is charged the full cost later, so that the
    client's address is charged for a read only.
    """

    def __init__(self, route_costs: Sequence[tuple[str, str, str, bool]]) -> None:
        """`route_costs` has (method, path template, cost type, keyed) of routes with a `cost`."""
        self._costs = [
            (COSTS[kind], COSTS["read"] if keyed else COSTS[kind])
            for _, _, kind, keyed in route_costs
        ]
        self._pattern = re.compile(
            "|".join(f"({method} {_as_pattern(path)}/?\\Z)" for method, path, _, _ in route_costs)
            or r"(?!)"
        )

    def look_up(self, method: str, path: str) -> tuple[int, int]:
        """Returns the units to charge a signed-in caller, and those to charge an address."""
        # The router treats // as /, so the cost must do the same.
        if "//" in path:
            path = _SLASHES.sub("/", path)
        match = self._pattern.match(f"{method} {path}")
        if match is not None and match.lastindex is not None:
            return self._costs[match.lastindex - 1]
        units = COSTS[_BY_METHOD.get(method, "write")]
        return units, units


def _as_pattern(template: str) -> str:
    return re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(template))
