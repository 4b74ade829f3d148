"""The outermost layer: every request passes here once, whatever its path.

It names the request, finds out who calls, charges the rate limit in the same Redis round trip that
checks the session, puts the standing headers on every answer, and writes one log line.
"""

import re
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from redis.exceptions import RedisError

from app.http import cors
from app.http.client_address import ClientAddresses, limited_together
from app.http.costs import CostTable, is_uncounted
from app.http.errors import envelope, to_api_error
from app.kit import background, limits, logs, metrics, trace
from app.kit.error_mapping import HTTP_SERVER_ERROR, report
from app.kit.errors import Invalid, RateLimited, TenantNotFound
from app.kit.limits import Verdict
from app.kit.redis import LuaScriptClient, ScriptFailed
from app.kit.trace import Trace
from app.security import sessions
from app.security.errors import TokenInvalid
from app.security.principal import Caller, Principal
from app.security.sessions import Grants
from app.security.tokens import Claims, Tokens
from app.settings import Settings
from db.session import Database

log = logs.get("http")

# Told of somebody who signed in and was refused.
OnLimited = Callable[[Principal, Verdict], Coroutine[Any, Any, None]]

SCRIPT = Path(__file__).with_suffix(".lua").read_text(encoding="utf-8")
_AWAY_SECONDS = 1.0
_BAD = 400
_COMPLAIN_SECONDS = 10.0
_REMAINING = re.compile(rb";r=\d+")
_READ_HEADERS = {
    b"authorization",
    b"x-request-id",
    b"x-correlation-id",
    b"x-tenant-id",
    b"x-forwarded-for",
    b"origin",
}
_STANDING_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_DEFAULT_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-frame-options": b"DENY",
}


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        db: Database,
        script: LuaScriptClient,
        tokens: Tokens,
        grants: Grants,
        costs: CostTable,
        on_limited: OnLimited | None = None,
    ) -> None:
        self._app = app
        self._db = db
        self._script = script
        self._tokens = tokens
        self._grants = grants
        self._costs = costs
        self._on_limited = on_limited
        self._anonymous = limits.anonymous_plan(settings.anonymous_per_minute)
        self._addresses = ClientAddresses(settings.trusted_proxies)
        self._headers = list(_STANDING_HEADERS)
        if settings.public_url.startswith("https://"):
            self._headers.append((b"strict-transport-security", b"max-age=31536000"))
        self._redis_back_at = 0.0
        self._complained_at = -_COMPLAIN_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_headers = _read_headers(scope["headers"])
        current = Trace(
            correlation_id=trace.safe_id(_text(request_headers, b"x-correlation-id"), "cor"),
            request_id=trace.safe_id(_text(request_headers, b"x-request-id"), "req"),
        )
        trace.begin(current)
        source = self._addresses.of(scope, _text(request_headers, b"x-forwarded-for"))
        caller = Caller(limited_together(source), source=source)
        scope.setdefault("state", {})["caller"] = caller
        answer = _Answer(send, self._headers, current, scope["state"])
        try:
            await self._enter(scope, receive, answer, request_headers, caller)
        except Exception as error:  # noqa: BLE001  # the last resort: nothing below answered
            await self._fail(answer, error, scope["path"])
        finally:
            tx = scope["state"].get("tx")
            if tx is not None:
                await tx.rollback()
            if "held_key" in scope["state"]:
                scope["state"]["held_key"].end(answered=answer.status < _BAD)
            elapsed = time.perf_counter() - started
            route = scope.get("path_template") or "unknown"
            metrics.observe_request(scope["method"], str(route), answer.status, elapsed)
            level = log.info
            if is_uncounted(scope["method"], scope["path"]) and answer.status < _BAD:
                level = log.debug
            level(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=answer.status,
                ms=round(elapsed * 1000, 1),
                user=caller.principal.user_id if caller.principal else None,
            )

    async def _enter(
        self,
        scope: HTTPScope,
        receive: Receive,
        answer: "_Answer",
        request_headers: dict[bytes, bytes],
        caller: Caller,
    ) -> None:
        if is_uncounted(scope["method"], scope["path"]):
            answer.limit_headers = limits.uncounted_verdict(self._anonymous).headers()
            await self._app(scope, receive, answer.send)
            return
        costs = self._costs.of(scope["method"], scope["path"])
        verdict = await self._admit(request_headers, caller, *costs)
        answer.limit_headers = verdict.headers()
        if not verdict.allowed:
            origin = _text(request_headers, b"origin")
            if origin and cors.was_welcome(scope["path"], origin):
                scope["state"]["allowed_origin"] = origin
            metrics.RATE_LIMITED.inc()
            if self._on_limited is not None and caller.principal is not None:
                background.spawn(self._on_limited(caller.principal, verdict))
            raise RateLimited(
                f"Too many requests: at most {verdict.limit} in {verdict.window} seconds. "
                f"Try again in {max(1, verdict.retry_after)} seconds",
                details={
                    "limit": verdict.limit,
                    "window": verdict.window,
                    "retry_after": max(1, verdict.retry_after),
                },
            )
        if b"%00" in scope["raw_path"] or b"%00" in scope["query_string"]:
            raise Invalid.field("path", "must not contain NUL characters")
        await self._narrow(request_headers, caller)
        await self._app(scope, receive, answer.send)

    async def _fail(self, answer: "_Answer", error: Exception, path: str) -> None:
        if answer.started:
            log.error("answer broken off", exc_info=error)
            return
        api_error = to_api_error(error)
        if api_error.status >= HTTP_SERVER_ERROR:
            report(api_error, error, path)
        body = envelope(api_error)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        for name, value in (api_error.headers or {}).items():
            headers.append((name.lower().encode(), value.encode()))
        await answer.send(
            {"type": "http.response.start", "status": api_error.status, "headers": headers}
        )
        await answer.send({"type": "http.response.body", "body": body, "more_body": False})

    # Who calls, and may they?

    async def _admit(
        self, request_headers: dict[bytes, bytes], caller: Caller, units: int, units_of_address: int
    ) -> Verdict:
        claims = self._claims(request_headers, caller)
        if claims is None:
            return await self._charge_address(caller, units_of_address)
        reply = await self._ask(units, claims=claims)
        if reply is not None and reply[0] == b"unknown":
            status = await sessions.read_status(self._db, claims.tid, claims.sid)
            fill = (sessions.ENDED, "", "")
            if status is not None and status.is_live:
                fill = ("live", str(status.grants_version), status.plan)
            reply = await self._ask(units, claims=claims, fill=fill)
        if reply is None:
            return await self._admit_without_redis(caller, claims)
        if reply[0] == b"ended":
            caller.problem = "This session has ended; sign in again"
            return await self._charge_address(caller, units_of_address)
        await self._recognise(caller, claims, int(reply[1]))
        return _verdict(reply)

    async def _admit_without_redis(self, caller: Caller, claims: Claims) -> Verdict:
        status = await sessions.read_status(self._db, claims.tid, claims.sid)
        if status is None or not status.is_live:
            caller.problem = "This session has ended; sign in again"
        else:
            await self._recognise(caller, claims, status.grants_version)
        return limits.uncounted_verdict(self._anonymous)

    def _claims(self, request_headers: dict[bytes, bytes], caller: Caller) -> Claims | None:
        scheme, _, token = (
            request_headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        )
        if scheme.lower() != "bearer" or not token or token.startswith("emb_"):
            return None
        try:
            return self._tokens.verify(token.strip(), "access")
        except TokenInvalid as problem:
            caller.problem = str(problem)
            return None

    async def _recognise(self, caller: Caller, claims: Claims, grants_version: int) -> None:
        permissions = await self._grants.load_permissions(claims.role, grants_version)
        caller.principal = Principal(claims.sub, claims.tid, claims.role, claims.sid, permissions)
        trace.current().actor_id = claims.sub

    async def _narrow(self, request_headers: dict[bytes, bytes], caller: Caller) -> None:
        """super_admin may name the tenant to act in; the header means nothing from others."""
        tenant_id = _text(request_headers, b"x-tenant-id")
        if not tenant_id or caller.principal is None or not caller.principal.is_super_admin:
            return
        if not await sessions.tenant_exists(self._db, tenant_id):
            raise TenantNotFound(f"X-Tenant-ID names no tenant: {tenant_id[:64]}")
        caller.principal = msgspec.structs.replace(caller.principal, narrowed_to=tenant_id)

    # The limiter

    async def charge(self, subject: str, plan: str, units: int) -> Verdict | None:
        """For whoever is limited beside caller and tenant; None while Redis is away."""
        reply = await self._ask(units, address=subject, plan=plan)
        return None if reply is None else _verdict(reply)

    async def _charge_address(self, caller: Caller, units: int) -> Verdict:
        reply = await self._ask(units, address=caller.address)
        return limits.uncounted_verdict(self._anonymous) if reply is None else _verdict(reply)

    async def _ask(
        self,
        units: int,
        *,
        claims: Claims | None = None,
        address: str = "",
        plan: str = "",
        fill: tuple[str, str, str] = ("", "", ""),
    ) -> list[Any] | None:
        """One call of the script; None while Redis is away, and then nothing is limited."""
        if time.monotonic() < self._redis_back_at:
            metrics.LIMITER_DEGRADED.inc()
            return None
        subject = f"parley:limit:{claims.tid if claims else address}"
        keys = (
            sessions.session_key(claims.sid) if claims else "",
            sessions.GRANTS_KEY,
            sessions.plan_key(claims.tid) if claims else "",
            subject,
            subject + ":minute",
            subject + ":hour",
            subject + ":day",
        )
        args = (
            0,
            units,
            "1" if claims else "0",
            "" if claims else plan or self._anonymous.to_script_argument(),
            *fill,
            sessions.CACHE_SECONDS,
        )
        try:
            return await self._script.run(keys, args)
        except ScriptFailed as error:
            log.exception("the script of the gate failed", reason=str(error)[:300])
            return None
        except (RedisError, OSError, TimeoutError) as error:
            self._degrade(error)
            return None

    def _degrade(self, error: Exception) -> None:
        now = time.monotonic()
        self._redis_back_at = now + _AWAY_SECONDS
        metrics.LIMITER_DEGRADED.inc()
        if now - self._complained_at >= _COMPLAIN_SECONDS:
            self._complained_at = now
            log.warning("redis is away: requests are not limited", reason=str(error)[:200])


class _Answer:
    """The way back: puts the standing headers on whatever is answered."""

    def __init__(
        self,
        send: Send,
        headers: list[tuple[bytes, bytes]],
        current: Trace,
        state: dict[str, Any],
    ) -> None:
        self._send = send
        self._state = state
        self._headers = headers
        self._current = current
        self.limit_headers: list[tuple[bytes, bytes]] = []
        self.started = False
        self.status = 500

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            headers = list(message["headers"])
            present = {name.lower() for name, _ in headers}
            headers += self._headers
            # Who came with an embed key is told of its tenant's limits, which are the closer ones.
            verdict = self._state.get("verdict")
            limits = self.limit_headers if verdict is None else verdict.headers()
            headers += limits if self.status != RateLimited.status else _exhausted(limits)
            headers += [item for item in _DEFAULT_HEADERS.items() if item[0] not in present]
            if "allowed_origin" in self._state:
                headers += cors.headers(self._state["allowed_origin"])
            headers.append((b"x-request-id", (self._current.request_id or "").encode()))
            headers.append((b"x-correlation-id", self._current.correlation_id.encode()))
            message["headers"] = headers
        await self._send(message)


def _exhausted(limit_headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Whatever refused the request, a 429 says that nothing remains."""
    exhausted = []
    for name, value in limit_headers:
        if name == b"x-ratelimit-remaining":
            exhausted.append((name, b"0"))
        elif name == b"ratelimit":
            exhausted.append((name, _REMAINING.sub(b";r=0", value)))
        else:
            exhausted.append((name, value))
    return exhausted


def _read_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers that the gate reads; lines of the same name are one list, as HTTP has it."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _READ_HEADERS:
            found[name] = found[name] + b"," + value if name in found else value
    return found


def _text(request_headers: dict[bytes, bytes], name: bytes) -> str | None:
    value = request_headers.get(name)
    return value.decode("latin-1") if value is not None else None


def _verdict(reply: list[Any]) -> Verdict:
    _, _, allowed, window, limit, remaining, reset, retry_after = reply
    return Verdict(bool(allowed), window, limit, remaining, reset, retry_after)
