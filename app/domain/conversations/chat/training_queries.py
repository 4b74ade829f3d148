"""The SQL of the training of agents, in their logs."""

from db import fast
from db.session import Tx

# They belong to no conversation, and so are not deleted with one.
_ADD = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, type, content, data, correlation_id)
VALUES ($1, $2, $3, 'training', $4, $5::jsonb, $6)
"""
_DELETE = """
DELETE FROM conversation_entries
WHERE tenant_id = $1 AND agent_id = ANY($2) AND conversation_id IS NULL
"""


async def add(tx: Tx, tenant: str, entry_id: str, *columns: str | None) -> None:
    """The columns are agent_id, content, data and correlation_id."""
    await fast.execute(tx, tenant, _ADD, entry_id, *columns)


async def delete(tx: Tx, tenant: str, agent_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _DELETE, agent_ids)
