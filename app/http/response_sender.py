"""Adds the headers that all responses have."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from litestar.types import Message, Send

from app.http import cors
from app.kit.errors import RateLimited
from app.kit.trace import Trace
from app.security import plans
from app.security.plans import Plan, Verdict

FIRST_ERROR_STATUS = 400
_REMAINING_PATTERN = re.compile(rb";r=\d+")
COMMON_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
# Added unless the handler sets its own; an empty value leaves the header out.
_DEFAULT_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-frame-options": b"DENY",
}


class ResponseSender:
    """Sends a response with the common headers added, and records its status. Without a `verdict`
    the headers show the limits of the anonymous plan, of which nothing is used. `before_error` is
    awaited before an error is sent.
    """

    def __init__(
        self,
        send: Send,
        headers: list[tuple[bytes, bytes]],
        anonymous: Plan,
        current: Trace,
        state: dict[str, Any],
        before_error: Callable[[], Awaitable[None]],
    ) -> None:
        self._send = send
        self._state = state
        self._headers = headers
        self._anonymous = anonymous
        self._current = current
        self._before_error = before_error
        self.verdict: Verdict | None = None
        self.started = False
        self.status = 500

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            if self.status >= FIRST_ERROR_STATUS:
                await self._before_error()
            headers = [item for item in message["headers"] if not _is_left_out(*item)]
            present = {name.lower() for name, _ in message["headers"]}
            headers += self._headers
            # With an embed key, the limits of its tenant are shown, which are the tighter ones.
            verdict = self._state.get("verdict") or self.verdict
            limit_headers = (verdict or plans.uncounted_verdict(self._anonymous)).headers()
            if self.status == RateLimited.status:
                limit_headers = _none_remaining(limit_headers)
            headers += limit_headers
            headers += [item for item in _DEFAULT_HEADERS.items() if item[0] not in present]
            if "allowed_origin" in self._state:
                headers += cors.headers(self._state["allowed_origin"])
            headers.append((b"x-request-id", (self._current.request_id or "").encode()))
            headers.append((b"x-correlation-id", self._current.correlation_id.encode()))
            message["headers"] = headers
        await self._send(message)


def _is_left_out(name: bytes, value: bytes) -> bool:
    return not value and name.lower() in _DEFAULT_HEADERS


def _none_remaining(limit_headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Sets the remaining units to 0, as every 429 must show, whichever limit refused it."""
    headers = []
    for name, value in limit_headers:
        if name == b"x-ratelimit-remaining":
            headers.append((name, b"0"))
        elif name == b"ratelimit":
            headers.append((name, _REMAINING_PATTERN.sub(b";r=0", value)))
        else:
            headers.append((name, value))
    return headers
