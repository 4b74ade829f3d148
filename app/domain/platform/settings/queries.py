from db import fast
from db.fast import Row
from db.session import Tx

_PLAN = """
SELECT plan, limits::text AS limits FROM tenants
WHERE ($1::text IS NULL OR id = $1) AND id = $2
"""


async def find_plan(tx: Tx, tenant: str | None, tenant_id: str) -> Row | None:
    return await fast.row(tx, tenant, _PLAN, tenant_id)
