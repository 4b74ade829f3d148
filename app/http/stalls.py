"""Names the requests that hold the event loop."""

from collections.abc import Mapping
from typing import Any

from litestar.types import HTTPScope

from app.http.gate import Gate
from app.kit.trace import Trace
from app.observe.loop_watcher import LoopWatcher


def watch_requests() -> LoopWatcher:
    return LoopWatcher({Gate.__call__.__code__: _describe_request})


def _describe_request(variables: Mapping[str, Any]) -> dict[str, str | None]:
    scope: HTTPScope = variables["scope"]
    current: Trace | None = variables.get("current")
    return {
        "route": f"{scope['method']} {scope.get('path_template') or 'unknown'}",
        "tenant_id": current.tenant_id if current else None,
        "request_id": current.request_id if current else None,
    }
