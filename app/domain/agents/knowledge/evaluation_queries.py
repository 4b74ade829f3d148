"""SQL of evaluations."""

import msgspec

from app.security.plans import Plan, plan_of
from db import fast
from db.fast import Row
from db.session import Tx

_LIST_EXPECTED = """
SELECT id, name FROM documents
WHERE tenant_id = $1 AND agent_id = $2 AND deleted_at IS NULL AND (id = ANY($3) OR name = ANY($4))
"""
_FIND_PLAN = "SELECT plan, limits::text AS limits FROM tenants WHERE id = $1"


async def list_expected(
    tx: Tx, tenant: str, agent_id: str, ids: list[str], names: list[str]
) -> list[Row]:
    """Returns the documents that have one of these ids or names."""
    return await fast.rows(tx, tenant, _LIST_EXPECTED, agent_id, ids, names)


async def find_plan(tx: Tx, tenant: str) -> Plan:
    row = await fast.row(tx, tenant, _FIND_PLAN)
    if row is None:
        raise LookupError(f"there is no tenant {tenant}")
    return plan_of(row["plan"], msgspec.json.decode(row["limits"]))
