"""Idempotency-Key: the same key and body return the first response again for 24 hours.

A request claims its key and stores its response in its own transaction, so that key, response and
effect exist together or not at all. It claims the key when that transaction begins, not before: the
handler may first wait for something else, and must hold no connection meanwhile. A second request
with the same key waits for the first; it keeps no connection either.

Routes with `idempotent="long_running"`, such as those that wait for a model, must not keep a
transaction open. They claim the key with a lease that they renew until the response is stored. One
whose effect is a single transaction stores its answer in it by `store_answer`.

The files of an upload go to disk while they are hashed.

Routes with `idempotent="streamed"` do so too, and their bodies are too large to be read before the
handler. The body of the first request is hashed while the handler reads it; that of a second one is
read to its end and compared with it.
"""

import asyncio
import hashlib
import time
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any

import msgspec
from litestar import MediaType, Request, Response
from litestar.serialization import encode_json

from app.crypto.keyring import Keyring, SealContext
from app.http import multipart
from app.http.authorization import caller_of
from app.http.dependencies import services_of
from app.http.errors import Replayed
from app.http.multipart import BodyDigest
from app.http.route_options import request_options
from app.http.transaction import request_tx
from app.jobs import background
from app.jobs.renewal import Renewal
from app.kit.errors import Conflict, IdempotencyMismatch, Invalid
from app.kit.ids import new_id
from db.connection_use import check_wait
from db.models import IdempotencyKey
from db.session import ALL_TENANTS, Database, Tx

HEADER = "Idempotency-Key"
LONG_RUNNING, STREAMED = "long_running", "streamed"
_MAX_LENGTH = 255

_WAIT_SECONDS = 30
_FIRST_PAUSE_SECONDS = 0.02
_MAX_PAUSE_SECONDS = 0.5
_RENEW_SECONDS = 20.0

_CLAIM_IN_TX = """
WITH lock AS (SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS acquired),
claim AS (
    INSERT INTO idempotency_keys AS k (id, fingerprint) SELECT $1, $2 FROM lock WHERE acquired
    ON CONFLICT (id) DO UPDATE
    SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now()
    WHERE k.created_at < now() - interval '24 hours'
    RETURNING id
)
SELECT lock.acquired, (SELECT id FROM claim) IS NOT NULL AS claimed FROM lock
"""
_CLAIM_WITH_LEASE = """
INSERT INTO idempotency_keys AS k (id, fingerprint, holder, renewed_at) VALUES ($1, $2, $3, now())
ON CONFLICT (id) DO UPDATE
SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now(),
    holder = excluded.holder, renewed_at = now()
WHERE k.created_at < now() - interval '24 hours'
   OR k.status IS NULL AND k.renewed_at < now() - interval '60 seconds'
RETURNING id
"""
_SELECT_KEY = "SELECT fingerprint, status, media_type, body FROM idempotency_keys WHERE id = $1"
_SELECT_ANSWERED_KEY = f"{_SELECT_KEY} AND created_at >= now() - interval '24 hours'"
_STORE_RESPONSE = (
    "UPDATE idempotency_keys SET status = $2, media_type = $3, body = $4 WHERE id = $1"
)
_STORE_LEASED_RESPONSE = """
UPDATE idempotency_keys
SET status = $2, media_type = $3, body = $4, fingerprint = coalesce($6, fingerprint)
WHERE id = $1 AND holder = $5 RETURNING id
"""
_RENEW_LEASE = "UPDATE idempotency_keys SET renewed_at = now() WHERE id = $1 AND holder = $2"
_RELEASE_KEY = "DELETE FROM idempotency_keys WHERE id = $1 AND holder = $2 AND status IS NULL"


class KeyLease:
    """A claimed key of a long-running request. It lapses unless it is renewed."""

    def __init__(self, db: Database, key_id: str) -> None:
        self.key_id = key_id
        self.holder = new_id("hld")
        self._db = db
        self._renewal: Renewal | None = None
        self._is_released = False

    def start_renewal(self) -> None:
        self._renewal = Renewal(_RENEW_SECONDS, lambda: self._execute(_RENEW_LEASE))

    async def store(
        self, tx: Tx, status: int, media_type: str, sealed_body: bytes, fingerprint: str | None
    ) -> bool:
        """Without a fingerprint, that of the claim stays. False when another request has the key
        since the lease lapsed.
        """
        values = (self.key_id, status, media_type, sealed_body, self.holder, fingerprint)
        return await (await tx.raw()).fetchval(_STORE_LEASED_RESPONSE, *values) is not None

    def begin(self) -> AbstractAsyncContextManager[Tx]:
        """Opens a transaction for a response whose effect is committed already."""
        return self._db.tx(ALL_TENANTS, autocommit=True)

    async def release(self) -> None:
        """Releases the key of a request that failed, for the next attempt. Called before the error
        is sent: the client may try again at once, with another body.
        """
        self._stop_renewal()
        self._is_released = True
        await self._execute(_RELEASE_KEY)

    def end(self, *, succeeded: bool) -> None:
        """Also ends a request that failed without a response, because its client is gone."""
        self._stop_renewal()
        if not succeeded and not self._is_released:
            background.spawn(self.release())

    def _stop_renewal(self) -> None:
        if self._renewal is not None:
            self._renewal.stop()

    async def _execute(self, sql: str) -> None:
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            await (await tx.raw()).execute(sql, self.key_id, self.holder)


class _Claim(msgspec.Struct):
    """A key that the current request claimed, in its transaction or with a lease."""

    key_id: str
    owner: Tx | KeyLease
    keyring: Keyring
    # Of a body that the handler reads.
    digest: BodyDigest | None = None

    @property
    def fingerprint(self) -> str | None:
        return None if self.digest is None else self.digest.hexdigest()

    def seal(self, body: bytes) -> bytes:
        return self.keyring.seal(body, _seal_context(self.key_id))


_current_claim: ContextVar[_Claim | None] = ContextVar("idempotency", default=None)


async def claim_or_replay(request: Request[Any, Any, Any]) -> Response[bytes] | None:
    """Returns the stored response of an earlier request with the same key, else claims the key."""
    # A pipelined request starts in the context of the one before it.
    _current_claim.set(None)
    key = request.headers.get(HEADER)
    mode = request_options(request).idempotent
    if key is None or request.method != "POST" or not mode:
        return None
    if not 1 <= len(key) <= _MAX_LENGTH:
        raise Invalid.field(HEADER, f"must have 1 to {_MAX_LENGTH} characters")
    key_id = _digest(*_key_owner(request), request.scope["path"], request.url.query, key)
    fingerprint = "" if mode == STREAMED else await _read_fingerprint(request)
    services = services_of(request)
    if mode in {LONG_RUNNING, STREAMED}:
        lease = KeyLease(services.db, key_id)
        row = await _claim_with_lease(services.db, lease, fingerprint)
        if row is None:
            _hold(request, lease, BodyDigest() if mode == STREAMED else None)
            return None
        if mode == STREAMED:
            fingerprint = await multipart.read_fingerprint(request)
    else:
        row = await _find_answered(services.db, key_id)
        if row is None:
            tx = request_tx(request)
            claim = _Claim(key_id, tx, services.keyring)
            tx.on_begin = partial(_claim_in_tx, tx, claim, fingerprint)
            _current_claim.set(claim)
            return None
    return _replay(row, fingerprint, services.keyring, key_id)


def _hold(request: Request[Any, Any, Any], lease: KeyLease, digest: BodyDigest | None) -> None:
    lease.start_renewal()
    state = request.scope["state"]
    state["idempotency_lease"], state["body_digest"] = lease, digest
    _current_claim.set(_Claim(lease.key_id, lease, services_of(request).keyring, digest))


def _replay(row: Any, fingerprint: str, keyring: Keyring, key_id: str) -> Response[bytes]:
    if row is None or row["fingerprint"] != fingerprint:
        raise IdempotencyMismatch(
            f"This {HEADER} was used with another body; use a new key for a new request"
        )
    return Response(
        keyring.open(row["body"], _seal_context(key_id)),
        status_code=row["status"],
        media_type=row["media_type"],
        headers={"Idempotent-Replayed": "true"},
    )


async def _find_answered(db: Database, key_id: str) -> Any:
    """Returns the row of a key whose request has succeeded."""
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchrow(_SELECT_ANSWERED_KEY, key_id)


async def _claim_in_tx(tx: Tx, claim: _Claim, fingerprint: str) -> None:
    """Waits until no other request with this key runs. Raises Replayed when one has succeeded."""
    deadline, pause = time.monotonic() + _WAIT_SECONDS, _FIRST_PAUSE_SECONDS
    while True:
        raw = await tx.raw()
        row = await raw.fetchrow(_CLAIM_IN_TX, claim.key_id, fingerprint)
        if row["claimed"]:
            return
        if row["acquired"]:
            stored = await raw.fetchrow(_SELECT_KEY, claim.key_id)
            _current_claim.set(None)
            raise Replayed(_replay(stored, fingerprint, claim.keyring, claim.key_id))
        await tx.rollback()
        pause = await _wait(deadline, pause)


async def _claim_with_lease(db: Database, lease: KeyLease, fingerprint: str) -> Any:
    """Waits until no other request with this key runs. Returns the row with the first response,
    or None when this request claimed the key.
    """
    deadline, pause = time.monotonic() + _WAIT_SECONDS, _FIRST_PAUSE_SECONDS
    while True:
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            ids = (lease.key_id, fingerprint, lease.holder)
            if await raw.fetchval(_CLAIM_WITH_LEASE, *ids) is not None:
                return None
            row = await raw.fetchrow(_SELECT_KEY, lease.key_id)
        if row is not None and (row["status"] is not None or row["fingerprint"] != fingerprint):
            return row
        pause = await _wait(deadline, pause)


async def _wait(deadline: float, pause: float) -> float:
    """Sleeps and returns the next, longer pause. Raises Conflict after the deadline."""
    if time.monotonic() > deadline:
        raise Conflict(f"A request with this {HEADER} is still running; try again later")
    check_wait("a request with the same key")
    await asyncio.sleep(pause)
    return min(2 * pause, _MAX_PAUSE_SECONDS)


async def store_response(response: Response[Any]) -> Response[Any]:
    """Stores the response under the key that the request claimed, if any."""
    claim = _current_claim.get()
    if claim is None:
        return response
    _current_claim.set(None)
    media_type = str(response.media_type or "application/json")
    body = response.render(response.content, media_type)
    status = response.status_code or 200
    if isinstance(claim.owner, KeyLease):
        async with claim.owner.begin() as tx:
            await claim.owner.store(tx, status, media_type, claim.seal(body), claim.fingerprint)
        return response
    raw = await claim.owner.raw()
    await raw.execute(_STORE_RESPONSE, claim.key_id, status, media_type, claim.seal(body))
    return response


async def store_answer(request: Request[Any, Any, Any], tx: Tx, answer: msgspec.Struct) -> None:
    """Stores what a route with a lease is about to answer, in the transaction of its effect: a
    process that dies between the two would leave an effect that the next request repeats.

    Raises Conflict when another request has the key meanwhile.
    """
    claim = _current_claim.get()
    if claim is None or not isinstance(claim.owner, KeyLease):
        return
    status, body = request.route_handler.status_code, encode_json(answer)
    if not await claim.owner.store(tx, status, MediaType.JSON, claim.seal(body), claim.fingerprint):
        raise Conflict(f"Another request with this {HEADER} runs; try again later")
    _current_claim.set(None)


def _key_owner(request: Request[Any, Any, Any]) -> tuple[str, str]:
    """The embed key, user or address that sent the key; and the session of a visitor token, or the
    tenant that a super_admin named.
    """
    caller, state = caller_of(request), request.scope["state"]
    if "embed_key_id" in state:
        return state["embed_key_id"], state.get("visitor_session", "")
    if caller.principal is None:
        return caller.address, ""
    return caller.principal.user_id, caller.principal.narrowed_to or ""


def _seal_context(key_id: str) -> SealContext:
    return SealContext.of(IdempotencyKey.body, "", key_id)


async def _read_fingerprint(request: Request[Any, Any, Any]) -> str:
    if request_options(request).upload and multipart.find_boundary(request) is not None:
        # Its files go to disk as they arrive, where the handler finds them.
        digest = request.scope["state"]["body_digest"] = BodyDigest()
        await request.form()
        return digest.hexdigest()
    return hashlib.sha256(await request.body()).hexdigest()


def _digest(*texts: str) -> str:
    return hashlib.sha256(msgspec.json.encode(texts)).hexdigest()
