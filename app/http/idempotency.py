"""Idempotency-Key: the same key and body give the first answer again for 24 hours.

The key is claimed and the answer is stored in the request's own transaction, so that key, answer
and effect exist together or not at all. A second request with the key waits for the first, without
a connection of its own.
"""

import asyncio
import hashlib
import time
from contextvars import ContextVar
from typing import Any

import msgspec
from litestar import Request, Response

from app.http.authorization import caller_of
from app.http.dependencies import services_of
from app.http.transaction import request_tx
from app.kit import background
from app.kit.crypto import Keyring, SealContext
from app.kit.errors import Conflict, IdempotencyMismatch, Invalid
from app.kit.ids import new_id
from app.kit.renewal import Renewal
from db.models import IdempotencyKey
from db.session import ALL_TENANTS, Database, Tx

HEADER = "Idempotency-Key"
_MAX_LENGTH = 255

_WAIT_SECONDS = 30
_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5

_CLAIM = """
WITH turn AS (SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS ours),
claim AS (
    INSERT INTO idempotency_keys AS k (id, fingerprint) SELECT $1, $2 FROM turn WHERE ours
    ON CONFLICT (id) DO UPDATE
    SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now()
    WHERE k.created_at < now() - interval '24 hours'
    RETURNING id
)
SELECT turn.ours, (SELECT id FROM claim) IS NOT NULL AS claimed FROM turn
"""
_READ = "SELECT fingerprint, status, media_type, body FROM idempotency_keys WHERE id = $1"
_STORE = "UPDATE idempotency_keys SET status = $2, media_type = $3, body = $4 WHERE id = $1"


_CLAIM_APART = """
INSERT INTO idempotency_keys AS k (id, fingerprint, holder, renewed_at) VALUES ($1, $2, $3, now())
ON CONFLICT (id) DO UPDATE
SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now(),
    holder = excluded.holder, renewed_at = now()
WHERE k.created_at < now() - interval '24 hours'
   OR k.status IS NULL AND k.renewed_at < now() - interval '60 seconds'
RETURNING id
"""
_RENEW = "UPDATE idempotency_keys SET renewed_at = now() WHERE id = $1 AND holder = $2"
_STORE_APART = f"{_STORE} AND holder = $5"
_FORGET = "DELETE FROM idempotency_keys WHERE id = $1 AND holder = $2 AND status IS NULL"
_RENEW_SECONDS = 20.0


class Hold:
    """A key that a long answer is being worked out for; it is ours while we say so."""

    def __init__(self, db: Database, key_id: str) -> None:
        self.key_id = key_id
        self.holder = new_id("hld")
        self._db = db
        self._renewal: Renewal | None = None

    def begin(self) -> None:
        self._renewal = Renewal(_RENEW_SECONDS, lambda: self._run(_RENEW))

    async def store(self, status: int, media_type: str, sealed: bytes) -> None:
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            given = (self.key_id, status, media_type, sealed, self.holder)
            await (await tx.raw()).execute(_STORE_APART, *given)

    def end(self, *, answered: bool) -> None:
        """Only an answer that succeeded is kept; otherwise the key is free again."""
        if self._renewal is not None:
            self._renewal.stop()
        if not answered:
            background.spawn(self._run(_FORGET))

    async def _run(self, sql: str) -> None:
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            await (await tx.raw()).execute(sql, self.key_id, self.holder)


class _Claim(msgspec.Struct):
    """Held by the request's transaction, or by itself where the answer takes long."""

    key_id: str
    by: Tx | Hold
    keyring: Keyring


_claimed: ContextVar[_Claim | None] = ContextVar("idempotency", default=None)


async def before(request: Request[Any, Any, Any]) -> Response[bytes] | None:
    # A pipelined request starts in the context of the one before it.
    _claimed.set(None)
    key = request.headers.get(HEADER)
    if (
        key is None
        or request.method != "POST"
        or not request.route_handler.opt.get("idempotent", True)
    ):
        return None
    if not 1 <= len(key) <= _MAX_LENGTH:
        raise Invalid.field(HEADER, f"must have 1 to {_MAX_LENGTH} characters")
    key_id = _digest(*_who(request), request.scope["path"], request.url.query, key)
    fingerprint = _digest((await request.body()).hex())
    services = services_of(request)
    if request.route_handler.opt.get("idempotent") == "apart":
        # Answers that take long, like a model's: no transaction is open meanwhile.
        hold = Hold(services.db, key_id)
        row = await _claimed_apart(services.db, hold, fingerprint)
        if row is None:
            hold.begin()
            request.scope["state"]["held_key"] = hold
            _claimed.set(_Claim(key_id, hold, services.keyring))
            return None
    else:
        tx = request_tx(request)
        if await _is_first(tx, key_id, fingerprint):
            _claimed.set(_Claim(key_id, tx, services.keyring))
            return None
        row = await (await tx.raw()).fetchrow(_READ, key_id)
    if row is None or row["fingerprint"] != fingerprint:
        raise IdempotencyMismatch(
            f"This {HEADER} was used with another body; use a new key for a new request"
        )
    return Response(
        services.keyring.open(row["body"], _place(key_id)),
        status_code=row["status"],
        media_type=row["media_type"],
        headers={"Idempotent-Replayed": "true"},
    )


async def _is_first(tx: Tx, key_id: str, fingerprint: str) -> bool:
    """Wait until no other request with this key is running; True when none has succeeded yet."""
    deadline, pause = time.monotonic() + _WAIT_SECONDS, _PAUSE_SECONDS
    while True:
        row = await (await tx.raw()).fetchrow(_CLAIM, key_id, fingerprint)
        if row["ours"]:
            return bool(row["claimed"])
        await tx.rollback()
        if time.monotonic() > deadline:
            raise Conflict(f"A request with this {HEADER} is still running; try again later")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def _claimed_apart(db: Database, hold: Hold, fingerprint: str) -> Any:
    """The first answer's row, once there is one; None when the key is ours to answer."""
    deadline, pause = time.monotonic() + _WAIT_SECONDS, _PAUSE_SECONDS
    while True:
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            if await raw.fetchval(_CLAIM_APART, hold.key_id, fingerprint, hold.holder) is not None:
                return None
            row = await raw.fetchrow(_READ, hold.key_id)
        if row is not None and (row["status"] is not None or row["fingerprint"] != fingerprint):
            return row
        if time.monotonic() > deadline:
            raise Conflict(f"A request with this {HEADER} is still running; try again later")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def after(response: Response[Any]) -> Response[Any]:
    claim = _claimed.get()
    if claim is None:
        return response
    _claimed.set(None)
    media_type = str(response.media_type or "application/json")
    body = response.render(response.content, media_type)
    sealed = claim.keyring.seal(body, _place(claim.key_id))
    status = response.status_code or 200
    if isinstance(claim.by, Hold):
        await claim.by.store(status, media_type, sealed)
        return response
    raw = await claim.by.raw()
    await raw.execute(_STORE, claim.key_id, status, media_type, sealed)
    return response


def _who(request: Request[Any, Any, Any]) -> tuple[str, str]:
    """Whose key it is, and for which tenant they act."""
    caller, state = caller_of(request), request.scope["state"]
    if "embed_key_id" in state:
        return state["embed_key_id"], ""
    if caller.principal is None:
        return caller.address, ""
    return caller.principal.user_id, caller.principal.narrowed_to or ""


def _place(key_id: str) -> SealContext:
    return SealContext.of(IdempotencyKey.body, "", key_id)


def _digest(*texts: str) -> str:
    return hashlib.sha256(msgspec.json.encode(texts)).hexdigest()
