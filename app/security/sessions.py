"""Live sessions and role grants. Postgres is the truth; Redis holds copies for at most a minute.

A copy is only ever written where none is (`NX`), and the end of a session overwrites it with a
mark, so that a slow reader cannot bring an ended session back.
"""

import asyncio
from collections.abc import Iterable

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.kit import limits, logs
from app.kit.errors import Unauthorized
from app.security.principal import Principal
from db import fast
from db.session import ALL_TENANTS, Database, Tx

log = logs.get("sessions")

CACHE_SECONDS = 60
ENDED = "ended"
GRANTS_KEY = "parley:grants"
GRANTS_VERSION = "grants_version"
_RAISE = """
if (tonumber(redis.call('get', KEYS[1])) or -1) <= tonumber(ARGV[1]) then
  redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
end
"""
_BACKGROUND: set[asyncio.Task[None]] = set()


def session_key(session_id: str) -> str:
    return f"parley:session:{session_id}"


def plan_key(tenant_id: str) -> str:
    return f"parley:plan:{tenant_id}"


class SessionStatus(msgspec.Struct, frozen=True):
    """A session as Postgres has it at this moment."""

    is_live: bool
    grants_version: int
    plan: str


_STATUS = """
SELECT s.ended_at IS NULL AND s.expires_at > now() AND u.status = 'active' AS live,
       t.plan, t.limits::text AS limits,
       (SELECT number FROM instance_state WHERE key = 'grants_version') AS grants_version
FROM sessions s JOIN users u ON u.id = s.user_id JOIN tenants t ON t.id = s.tenant_id
WHERE s.tenant_id = $1 AND s.id = $2
"""


async def read_status(db: Database, tenant_id: str, session_id: str) -> SessionStatus | None:
    async with db.tx(tenant_id, autocommit=True) as tx:
        row = await fast.row(tx, tenant_id, _STATUS, session_id)
    if row is None:
        return None
    plan = limits.plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    return SessionStatus(row["live"], row["grants_version"] or 0, plan.to_script_argument())


_IS_UNCHANGED = """
SELECT s.ended_at IS NULL AND s.expires_at > now() AND u.status = 'active' AND u.role = $3
FROM users u JOIN sessions s ON s.user_id = u.id
WHERE u.tenant_id = $1 AND s.id = $2
"""


async def require_active_session(tx: Tx, principal: Principal) -> None:
    """What the gate saw of the caller holds now, too.

    Asked under the lock of whatever could have changed it: somebody who was just demoted must not
    undo that with a request that was already on its way.
    """
    tenant_id = principal.tenant_id
    if not await fast.value(tx, tenant_id, _IS_UNCHANGED, principal.session_id, principal.role):
        raise Unauthorized("This session has ended; sign in again")


async def tenant_exists(db: Database, tenant_id: str) -> bool:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        return bool(await raw.fetchval("SELECT 1 FROM tenants WHERE id = $1", tenant_id))


class SessionCache:
    """Keeps the copies true when their source changes. Called after the commit."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def end_sessions(self, session_ids: Iterable[str]) -> None:
        await self._set({session_key(session_id): ENDED for session_id in session_ids})

    async def change_plan(self, tenant_id: str, limits_argument: str) -> None:
        await self._set({plan_key(tenant_id): limits_argument})

    async def change_grants(self, version: int) -> None:
        await self._set({GRANTS_KEY: str(version)}, rising=True)

    async def _set(self, values: dict[str, str], *, rising: bool = False) -> None:
        try:
            await self._write(values, rising=rising)
        except (RedisError, OSError, TimeoutError):
            # Redis is away, so nobody reads copies now; mend them before they could come back.
            task = asyncio.create_task(self._write_later(values, rising=rising))
            _BACKGROUND.add(task)
            task.add_done_callback(_BACKGROUND.discard)

    async def _write(self, values: dict[str, str], *, rising: bool) -> None:
        async with asyncio.timeout(1):
            pipe = self._redis.pipeline(transaction=False)
            for key, value in values.items():
                if rising:
                    # Two changes at once may arrive here in the other order.
                    pipe.eval(_RAISE, 1, key, value, CACHE_SECONDS)
                else:
                    pipe.set(key, value, ex=CACHE_SECONDS)
            await pipe.execute()

    async def _write_later(self, values: dict[str, str], *, rising: bool) -> None:
        for _ in range(CACHE_SECONDS * 4):
            await asyncio.sleep(0.25)
            try:
                await self._write(values, rising=rising)
            except (RedisError, OSError, TimeoutError):
                continue
            return
        log.warning("copies left to expire", keys=len(values))


class Grants:
    """Each role's permissions, reloaded when a request brings a newer version."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._version = -1
        self._by_role: dict[str, frozenset[str]] = {}
        self._lock = asyncio.Lock()

    async def of(self, role: str, version: int) -> frozenset[str]:
        if version > self._version:
            async with self._lock:
                if version > self._version:
                    await self._load()
        return self._by_role.get(role, frozenset())

    async def _load(self) -> None:
        async with self._db.tx(ALL_TENANTS) as tx:
            version = await grants_version(tx)
            rows = await (await tx.raw()).fetch("SELECT role, permission FROM role_grants")
        by_role: dict[str, set[str]] = {}
        for row in rows:
            by_role.setdefault(row["role"], set()).add(row["permission"])
        self._by_role = {role: frozenset(keys) for role, keys in by_role.items()}
        self._version = version


async def grants_version(tx: Tx) -> int:
    raw = await tx.raw()
    found = await raw.fetchval("SELECT number FROM instance_state WHERE key = $1", GRANTS_VERSION)
    return int(found or 0)


async def bump_grants(tx: Tx) -> int:
    """A new version of the grants, so that every process reloads them at its next request."""
    raw = await tx.raw()
    version: int = await raw.fetchval(
        "INSERT INTO instance_state AS s (key, number) VALUES ($1, 1) "
        "ON CONFLICT (key) DO UPDATE SET number = s.number + 1 RETURNING number",
        GRANTS_VERSION,
    )
    return version
