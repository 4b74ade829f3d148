"""Cancels requests whose clients have closed their connections.

A read stops, and so does a request on a route with `stops_when_gone=True`: one that waits for
something else before it changes anything. Others go on to their end; some pages send their last
request while they are closed.
"""

import asyncio
from typing import Any

from litestar import Request

from app.http.route_options import request_options

_READS = {"GET", "HEAD"}
_TASK, _IS_GONE = "cancellable_task", "is_client_gone"


def allow_cancellation(request: Request[Any, Any, Any]) -> None:
    """Called by the task of the request, before its handler."""
    if request.method in _READS or request_options(request).stops_when_gone:
        request.scope["state"][_TASK] = asyncio.current_task()


def cancel_request(state: dict[str, Any]) -> None:
    """Called by the server when the connection is lost before the response."""
    task: asyncio.Task[Any] | None = state.get(_TASK)
    if task is not None:
        state[_IS_GONE] = True
        task.cancel()


def is_cancelled(state: dict[str, Any]) -> bool:
    """True when `cancel_request` ended the request."""
    return bool(state.get(_IS_GONE))
