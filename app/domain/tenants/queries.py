from db.fast import Row
from db.session import Tx

_ONE = "SELECT id, name, plan, limits::text AS limits, created_at FROM tenants WHERE id = $1"


async def one(tx: Tx, tenant_id: str) -> Row | None:
    found: Row | None = await (await tx.raw()).fetchrow(_ONE, tenant_id)
    return found
