"""Active sessions and role grants. Postgres is authoritative; Redis caches them for a minute.

A cache entry is only written where none exists (`NX`), and the end of a session overwrites it with
ENDED, so that a slow reader cannot restore an ended session. For the same reason the verification
of an e-mail address overwrites UNVERIFIED with LIVE.
"""

import asyncio
from collections.abc import Iterable

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.jobs import background
from app.kit import logs
from app.kit.errors import Unauthorized
from app.security import plans, service_keys
from app.security.principal import Principal
from db import fast
from db.session import ALL_TENANTS, DATABASE_ERRORS, Database, Tx

log = logs.get("sessions")

CACHE_SECONDS = 60
# How old the stored time of a session's last use may become.
SEEN_SECONDS = 300.0
LIVE = "live"
UNVERIFIED = "unverified"
ENDED = "ended"
GRANTS_KEY = "parley:grants"
GRANTS_VERSION = "grants_version"
_SET_IF_GREATER = """
if (tonumber(redis.call('get', KEYS[1])) or -1) <= tonumber(ARGV[1]) then
  redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
end
"""
_SET_UNLESS_ENDED = """
if redis.call('get', KEYS[1]) ~= 'ended' then
  redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
end
"""
_background_tasks: set[asyncio.Task[None]] = set()


def session_key(session_id: str) -> str:
    return f"parley:session:{session_id}"


def plan_key(tenant_id: str) -> str:
    return f"parley:plan:{tenant_id}"


class SessionStatus(msgspec.Struct, frozen=True):
    """The current state of a session in Postgres."""

    is_live: bool
    is_verified: bool
    grants_version: int
    plan: str

    @property
    def cache_entries(self) -> tuple[str, str, str]:
        """The session, the grants version and the plan as Redis caches them."""
        if not self.is_live:
            return ENDED, "", ""
        return LIVE if self.is_verified else UNVERIFIED, str(self.grants_version), self.plan


_STATUS = """
SELECT s.ended_at IS NULL AND s.expires_at > now() AND u.status = 'active' AS live,
       s.last_seen_at < now() - $3 * interval '1 second' AS is_outdated, u.email_verified,
       t.plan, t.limits::text AS limits,
       (SELECT number FROM instance_state WHERE key = 'grants_version') AS grants_version
FROM sessions s JOIN users u ON u.id = s.user_id JOIN tenants t ON t.id = s.tenant_id
WHERE s.tenant_id = $1 AND s.id = $2
"""

_KEY_STATUS = """
SELECT k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()) AS live,
       coalesce(k.last_used_at < now() - $3 * interval '1 second', true) AS is_outdated,
       true AS email_verified, t.plan, t.limits::text AS limits,
       (SELECT number FROM instance_state WHERE key = 'grants_version') AS grants_version
FROM service_keys k JOIN tenants t ON t.id = k.tenant_id
WHERE k.tenant_id = $1 AND k.id = $2
"""

_MARK_KEY_USED = """
UPDATE service_keys SET last_used_at = now()
WHERE id = (SELECT id FROM service_keys
            WHERE tenant_id = $1 AND id = $2
              AND coalesce(last_used_at < now() - $3 * interval '1 second', true)
            FOR UPDATE SKIP LOCKED)
"""

# Does not wait for a transaction that refreshes or ends the session.
_MARK_SEEN = """
UPDATE sessions SET last_seen_at = now()
WHERE id = (SELECT id FROM sessions
            WHERE tenant_id = $1 AND id = $2 AND last_seen_at < now() - $3 * interval '1 second'
            FOR UPDATE SKIP LOCKED)
"""


async def read_status(db: Database, tenant_id: str, session_id: str) -> SessionStatus | None:
    """Also stores that the session, or service key, is in use, every few minutes at most."""
    is_key = session_id.startswith(service_keys.ID_PREFIX)
    read, mark = (_KEY_STATUS, _MARK_KEY_USED) if is_key else (_STATUS, _MARK_SEEN)
    async with db.tx(tenant_id, autocommit=True) as tx:
        row = await fast.row(tx, tenant_id, read, session_id, SEEN_SECONDS)
        if row is not None and row["live"] and row["is_outdated"]:
            await _mark_seen(tx, mark, tenant_id, session_id)
    if row is None:
        return None
    plan = plans.plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    return SessionStatus(
        row["live"], row["email_verified"], row["grants_version"] or 0, plan.to_script_argument()
    )


async def is_live(db: Database, tenant_id: str, session_id: str) -> bool:
    status = await read_status(db, tenant_id, session_id)
    return status is not None and status.is_live


async def _mark_seen(tx: Tx, sql: str, tenant_id: str, session_id: str) -> None:
    """Does not fail the request, which is allowed already. `tx` is no transaction that it could
    leave in a failed state.
    """
    try:
        await fast.execute(tx, tenant_id, sql, session_id, SEEN_SECONDS)
    except DATABASE_ERRORS as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        log.warning("the use of a session was not stored", reason=reason)


_IS_UNCHANGED = """
SELECT s.ended_at IS NULL AND s.expires_at > now() AND u.status = 'active' AND u.role = $3
FROM users u JOIN sessions s ON s.user_id = u.id
WHERE u.tenant_id = $1 AND s.id = $2
"""


async def require_active_session(tx: Tx, principal: Principal) -> None:
    """Raises Unauthorized when the session ended or the role changed since the gate's check.

    Called under the lock of the rows that could have changed it: a user who was just demoted must
    not undo that with a request that is already running.
    """
    tenant_id = principal.tenant_id
    if not await fast.value(tx, tenant_id, _IS_UNCHANGED, principal.session_id, principal.role):
        raise Unauthorized("This session has ended; sign in again")


async def tenant_exists(db: Database, tenant_id: str) -> bool:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        return bool(await raw.fetchval("SELECT 1 FROM tenants WHERE id = $1", tenant_id))


class SessionCache:
    """Updates the cache entries in Redis. Called after the commit of the change."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def end_sessions(self, session_ids: Iterable[str]) -> None:
        await self._set({session_key(session_id): ENDED for session_id in session_ids})

    async def verify_sessions(self, session_ids: Iterable[str]) -> None:
        entries = {session_key(session_id): LIVE for session_id in session_ids}
        await self._set(entries, script=_SET_UNLESS_ENDED)

    async def change_plan(self, tenant_id: str, limits_argument: str) -> None:
        await self._set({plan_key(tenant_id): limits_argument})

    async def change_grants(self, version: int) -> None:
        # Two concurrent changes may arrive here in reverse order.
        await self._set({GRANTS_KEY: str(version)}, script=_SET_IF_GREATER)

    async def _set(self, values: dict[str, str], *, script: str | None = None) -> None:
        """`script` decides whether an entry is written; without one all are."""
        try:
            await self._write(values, script)
        except (RedisError, OSError, TimeoutError):
            # Redis is unavailable: no entry is read now, but update them before old ones are read.
            task = background.start(self._write_later(values, script))
            _background_tasks.add(task)
            task.add_done_callback(_background_tasks.discard)

    async def _write(self, values: dict[str, str], script: str | None) -> None:
        async with asyncio.timeout(1):
            pipe = self._redis.pipeline(transaction=False)
            for key, value in values.items():
                if script is not None:
                    pipe.eval(script, 1, key, value, CACHE_SECONDS)
                else:
                    pipe.set(key, value, ex=CACHE_SECONDS)
            await pipe.execute()

    async def _write_later(self, values: dict[str, str], script: str | None) -> None:
        for _ in range(CACHE_SECONDS * 4):
            await asyncio.sleep(0.25)
            try:
                await self._write(values, script)
            except (RedisError, OSError, TimeoutError):
                continue
            return
        log.warning("cache entries were not updated and will expire", keys=len(values))


class Grants:
    """The permissions of each role, reloaded when a request carries a newer version."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._version = -1
        self._by_role: dict[str, frozenset[str]] = {}
        self._lock = asyncio.Lock()

    async def load_permissions(self, role: str, version: int) -> frozenset[str]:
        if version > self._version:
            async with self._lock:
                if version > self._version:
                    await self._load()
        return self._by_role.get(role, frozenset())

    async def _load(self) -> None:
        async with self._db.tx(ALL_TENANTS) as tx:
            version = await read_grants_version(tx)
            rows = await (await tx.raw()).fetch("SELECT role, permission FROM role_grants")
        by_role: dict[str, set[str]] = {}
        for row in rows:
            by_role.setdefault(row["role"], set()).add(row["permission"])
        self._by_role = {role: frozenset(keys) for role, keys in by_role.items()}
        self._version = version


async def read_grants_version(tx: Tx) -> int:
    raw = await tx.raw()
    number = await raw.fetchval("SELECT number FROM instance_state WHERE key = $1", GRANTS_VERSION)
    return int(number or 0)


async def bump_grants(tx: Tx) -> int:
    """Increments the version of the grants: every process reloads them at its next request."""
    raw = await tx.raw()
    version: int = await raw.fetchval(
        "INSERT INTO instance_state AS s (key, number) VALUES ($1, 1) "
        "ON CONFLICT (key) DO UPDATE SET number = s.number + 1 RETURNING number",
        GRANTS_VERSION,
    )
    return version
