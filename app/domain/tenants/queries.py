from db.fast import Row
from db.session import Tx

_ONE = "SELECT id, name, plan, limits::text AS limits, created_at FROM tenants WHERE id = $1"

_HAS_USERS = "SELECT EXISTS (SELECT 1 FROM users WHERE tenant_id = $1)"
_DEFAULT = "SELECT value FROM instance_state WHERE key = 'default_tenant'"


async def one(tx: Tx, tenant_id: str) -> Row | None:
    found: Row | None = await (await tx.raw()).fetchrow(_ONE, tenant_id)
    return found


async def has_users(tx: Tx, tenant_id: str) -> bool:
    """Whoever asks, in whichever tenant they act: no user may be overlooked."""
    return bool(await (await tx.raw()).fetchval(_HAS_USERS, tenant_id))


async def delete_records(tx: Tx, tenant_id: str) -> None:
    """What refers to no tenant row, because everything that happens writes it."""
    raw = await tx.raw()
    for table in ("event_log", "usage"):
        await raw.execute(f"DELETE FROM {table} WHERE tenant_id = $1", tenant_id)  # noqa: S608


async def default_id(tx: Tx) -> str | None:
    found: str | None = await (await tx.raw()).fetchval(_DEFAULT)
    return found
