"""The gate: the outermost ASGI layer, which every request passes once.

It sets the request and correlation ids, identifies the caller, checks the session and charges the
rate limit in one Redis round trip, adds the common headers to every response, and writes one log
line.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from app.http import cors, refunds, request_cancellation
from app.http.body_budget import BodyBudget
from app.http.client_address import ClientAddresses, rate_limit_address
from app.http.costs import CostTable, is_uncounted
from app.http.errors import envelope, to_api_error
from app.http.limiter import Limiter, to_verdict
from app.http.refunds import Refunds
from app.http.request_headers import header_text, read_headers
from app.http.response_sender import COMMON_HEADERS, FIRST_ERROR_STATUS, ResponseSender
from app.http.uploads import MAX_FULL_FILES
from app.jobs import background
from app.kit import clock, logs, trace
from app.kit.error_mapping import HTTP_SERVER_ERROR, report
from app.kit.errors import ClientGone, Invalid, NotReady, RateLimited
from app.kit.redis import LuaScriptClient
from app.kit.trace import Trace
from app.observe import metrics
from app.security import plans, service_keys, sessions
from app.security.errors import TenantNotFound, TokenInvalid
from app.security.plans import Charge, Plan, Verdict
from app.security.principal import (
    EMBED_PREFIX,
    SERVICE_PREFIX,
    VISITOR_PREFIX,
    Caller,
    Principal,
)
from app.security.service_keys import KeyClaims, ServiceKeys
from app.security.tokens import Claims
from app.services import Services
from db import connection_use
from db.session import DATABASE_ERRORS

log = logs.get("http")


class Callbacks(msgspec.Struct, frozen=True):
    """What areas do about requests."""

    # Called when a tenant is rate limited; receives its caller.
    on_limited: Callable[[Principal, Verdict], Coroutine[Any, Any, None]]
    # Called when a request that emitted events is over; receives its method and path, its status,
    # its start and its seconds.
    on_finished: Callable[[Trace, str, int, datetime, float], None]
    # Called for each request that a tenant is charged for; receives the tenant, and the id of the
    # user or key that sent it, "" for others.
    on_admitted: Callable[[str, str], None]


_VISITOR_PREFIXES = (EMBED_PREFIX, VISITOR_PREFIX)


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        *,
        services: Services,
        script: LuaScriptClient,
        costs: CostTable,
        callbacks: Callbacks,
    ) -> None:
        self._app = app
        settings = services.settings
        self._db = services.db
        self._readiness = services.readiness
        self._tokens = services.tokens
        self._service_keys = ServiceKeys(services.db)
        self._grants = services.grants
        self._limiter = Limiter(script)
        self._refunds = Refunds(self._limiter)
        self._costs = costs
        self._callbacks = callbacks
        self._anonymous = plans.anonymous_plan(settings.anonymous_per_minute)
        self._addresses = ClientAddresses(settings.trusted_proxies)
        self._bodies = BodyBudget(settings.body_memory_mb, MAX_FULL_FILES * settings.max_body_mb)
        self._headers = list(COMMON_HEADERS)
        if settings.public_url.startswith("https://"):
            self._headers.append((b"strict-transport-security", b"max-age=31536000"))
        self._has_metrics = settings.has_metrics_on_web_port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_headers = read_headers(scope["headers"])
        current = Trace(
            correlation_id=trace.safe_id(header_text(request_headers, b"x-correlation-id"), "cor"),
            request_id=trace.safe_id(header_text(request_headers, b"x-request-id"), "req"),
        )
        trace.begin(current)
        connections = connection_use.begin()
        source = self._addresses.resolve(scope, header_text(request_headers, b"x-forwarded-for"))
        caller = Caller(rate_limit_address(source), source=source)
        scope.setdefault("state", {})["caller"] = caller
        state = scope["state"]
        body = state["body_use"] = self._bodies.start(caller.address)
        response = ResponseSender(
            send, self._headers, self._anonymous, current, state, partial(_end_failed, state)
        )
        try:
            await self._handle(scope, body.count(receive), response, request_headers, caller)
        except asyncio.CancelledError:
            if not request_cancellation.is_cancelled(scope["state"]):
                raise
            response.status = ClientGone.status
        except Exception as error:  # noqa: BLE001  # no layer below handled it
            await self._send_error(response, error, scope["path"])
        finally:
            body.end()
            connection_use.end(connections)
            await self._close(scope["state"], response.status)
            seconds = time.perf_counter() - started
            _log_request(scope, caller, response.status, seconds)
            if current.event_tenants:
                name = f"{scope['method']} {logs.mask_path(scope['path'])}"
                started_at = clock.now() - timedelta(seconds=seconds)
                self._callbacks.on_finished(current, name, response.status, started_at, seconds)

    async def _close(self, state: dict[str, Any], status: int) -> None:
        """Ends what the request left open."""
        tx = state.get("tx")
        if tx is not None:
            await tx.rollback()
        lease = state.get("idempotency_lease")
        if lease is not None:
            lease.end(succeeded=status < FIRST_ERROR_STATUS)
        self._refunds.give_back(state, status)

    async def _handle(
        self,
        scope: HTTPScope,
        receive: Receive,
        response: ResponseSender,
        request_headers: dict[bytes, bytes],
        caller: Caller,
    ) -> None:
        is_metrics = self._has_metrics and scope["path"] == "/metrics"
        if is_metrics or is_uncounted(scope["method"], scope["path"]):
            await self._app(scope, receive, response.send)
            return
        if self._readiness.problem is not None:
            raise NotReady(f"This instance is not ready: {self._readiness.problem}")
        costs = self._costs.look_up(scope["method"], scope["path"])
        verdict = await self._admit(scope["state"], request_headers, caller, *costs)
        response.verdict = verdict
        if not verdict.allowed:
            origin = header_text(request_headers, b"origin")
            if origin and cors.was_allowed(scope["path"], origin):
                scope["state"]["allowed_origin"] = origin
            metrics.RATE_LIMITED.inc()
            if caller.principal is not None and caller.principal.is_verified:
                background.spawn(self._callbacks.on_limited(caller.principal, verdict))
            raise _rate_limited(verdict)
        if caller.principal is not None and caller.principal.is_verified:
            self._callbacks.on_admitted(caller.principal.tenant_id, caller.principal.user_id)
        if b"%00" in scope["raw_path"] or b"%00" in scope["query_string"]:
            raise Invalid.field("path", "must not contain NUL characters")
        await self._select_tenant(request_headers, caller)
        await self._app(scope, receive, response.send)

    async def _send_error(self, response: ResponseSender, error: Exception, path: str) -> None:
        if response.started:
            log.error("response interrupted", exc_info=error)
            return
        api_error = to_api_error(error)
        if api_error.status >= HTTP_SERVER_ERROR:
            report(api_error, error, path)
        body = envelope(api_error, path)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        for name, value in (api_error.headers or {}).items():
            headers.append((name.lower().encode(), value.encode()))
        await response.send(
            {"type": "http.response.start", "status": api_error.status, "headers": headers}
        )
        await response.send({"type": "http.response.body", "body": body, "more_body": False})

    # Identifying the caller

    async def _admit(
        self,
        state: dict[str, Any],
        request_headers: dict[bytes, bytes],
        caller: Caller,
        units: int,
        address_units: int,
    ) -> Verdict:
        """Identifies the caller and charges the rate limit, in one Redis round trip."""
        token = _read_token(request_headers)
        if token.startswith(SERVICE_PREFIX) and self._service_keys.find(token) is None:
            # Whoever guesses keys pays for the search.
            verdict = await self._charge_address(state, caller, 1)
            if not verdict.allowed:
                return verdict
            await self._service_keys.load(token)
        claims = self._read_claims(token, caller)
        if claims is None:
            return await self._charge_address(state, caller, address_units)
        reply = await self._limiter.check_session(claims, units)
        if reply is not None and reply[0] == b"unknown":
            status = await sessions.read_status(self._db, claims.tid, claims.sid)
            copies = (sessions.ENDED, "", "") if status is None else status.cache_entries
            reply = await self._limiter.check_session(claims, units, copies)
        if reply is None:
            return await self._admit_without_redis(caller, claims)
        if reply[0] == b"ended":
            caller.problem = _describe_end(claims)
            return await self._charge_address(state, caller, address_units)
        is_verified = reply[0] != b"unverified"
        await self._set_principal(caller, claims, int(reply[1]), is_verified=is_verified)
        if not is_verified:
            # Anybody may have registered it: its requests are not the tenant's.
            return await self._charge_address(state, caller, address_units)
        verdict = to_verdict(reply)
        refunds.record(state, [Charge(claims.tid, "", units)], verdict)
        return verdict

    async def _admit_without_redis(self, caller: Caller, claims: Claims) -> Verdict:
        status = await sessions.read_status(self._db, claims.tid, claims.sid)
        if status is None or not status.is_live:
            caller.problem = _describe_end(claims)
        else:
            version, is_verified = status.grants_version, status.is_verified
            await self._set_principal(caller, claims, version, is_verified=is_verified)
        return plans.uncounted_verdict(self._anonymous)

    def _read_claims(self, token: str, caller: Caller) -> Claims | None:
        if not token or token.startswith(_VISITOR_PREFIXES):
            return None
        try:
            if token.startswith(SERVICE_PREFIX):
                return self._service_keys.verify(token)
            return self._tokens.verify(token, "access")
        except TokenInvalid as error:
            caller.problem = str(error)
            return None

    async def _set_principal(
        self, caller: Caller, claims: Claims, grants_version: int, *, is_verified: bool
    ) -> None:
        permissions = await self._grants.load_permissions(claims.role, grants_version)
        principal = Principal(
            claims.sub, claims.tid, claims.role, claims.sid, permissions, is_verified
        )
        if isinstance(claims, KeyClaims):
            principal = service_keys.restrict(principal, claims)
        caller.principal = principal
        current = trace.current()
        current.actor_id, current.tenant_id = claims.sub, claims.tid

    async def _select_tenant(self, request_headers: dict[bytes, bytes], caller: Caller) -> None:
        """Applies X-Tenant-ID, by which a super_admin acts in one tenant. Others cannot use it."""
        tenant_id = header_text(request_headers, b"x-tenant-id")
        if not tenant_id or caller.principal is None or not caller.principal.is_super_admin:
            return
        if not await sessions.tenant_exists(self._db, tenant_id):
            raise TenantNotFound(f"X-Tenant-ID names no tenant: {tenant_id[:64]}")
        caller.principal = msgspec.structs.replace(caller.principal, narrowed_to=tenant_id)

    # Rate limiting

    async def charge_visit(
        self, state: dict[str, Any], charges: Sequence[Charge]
    ) -> Verdict | None:
        """Charges subjects that are neither the caller nor a signed-in tenant, such as the tenant
        of an embed key: all of them, or none. A request that is then refused costs one unit, unless
        `keep_charges` was called. None while Redis is unavailable.
        """
        verdict = await self._limiter.charge(charges)
        if verdict is not None:
            state["verdict"] = verdict
            refunds.record(state, charges, verdict, is_visit=True)
        return verdict

    async def charge_caller(
        self, state: dict[str, Any], principal: Principal, plan: Plan, units: int
    ) -> None:
        """Charges the tenant of a signed-in caller, whose plan this is, for work that costs more
        than its route. Raises RateLimited. A request that is then refused costs one unit of it.
        """
        charge = Charge(principal.tenant_id, plan.to_script_argument(), units)
        verdict = await self.charge_visit(state, [charge])
        if verdict is not None and not verdict.allowed:
            metrics.RATE_LIMITED.inc()
            background.spawn(self._callbacks.on_limited(principal, verdict))
            raise _rate_limited(verdict)

    def count_visit(self, tenant_id: str) -> None:
        """Counts a request of a visitor, after the tenant was charged for it."""
        self._callbacks.on_admitted(tenant_id, trace.current().actor_id or "")

    async def _charge_address(self, state: dict[str, Any], caller: Caller, units: int) -> Verdict:
        charge = Charge(caller.address, self._anonymous.to_script_argument(), units)
        verdict = await self._limiter.charge([charge])
        if verdict is None:
            return plans.uncounted_verdict(self._anonymous)
        refunds.record(state, [charge], verdict)
        return verdict


def _read_token(request_headers: dict[bytes, bytes]) -> str:
    header = request_headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _describe_end(claims: Claims) -> str:
    if isinstance(claims, KeyClaims):
        return "This service key was revoked, or it has expired"
    return "This session has ended; sign in again"


async def _end_failed(state: dict[str, Any]) -> None:
    """Ends what a failed request holds before its error is sent: sending may take long, and the
    client may send the request again at once.
    """
    tx, lease = state.get("tx"), state.get("idempotency_lease")
    with suppress(*DATABASE_ERRORS):
        if tx is not None:
            await tx.rollback()
        if lease is not None:
            await lease.release()


def _rate_limited(verdict: Verdict) -> RateLimited:
    retry_after = max(1, verdict.retry_after)
    return RateLimited(
        f"Too many requests: at most {verdict.limit} in {verdict.window} seconds. "
        f"Try again in {retry_after} seconds",
        details={"limit": verdict.limit, "window": verdict.window, "retry_after": retry_after},
    )


def _log_request(scope: HTTPScope, caller: Caller, status: int, seconds: float) -> None:
    route = scope.get("path_template") or "unknown"
    metrics.REQUESTS.observe(scope["method"], str(route), status, seconds)
    level = log.info
    if is_uncounted(scope["method"], scope["path"]) and status < FIRST_ERROR_STATUS:
        level = log.debug
    level(
        "request",
        method=scope["method"],
        path=logs.mask_path(scope["path"]),
        status=status,
        ms=round(seconds * 1000, 1),
        user=caller.principal.user_id if caller.principal else None,
    )
