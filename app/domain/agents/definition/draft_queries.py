"""The SQL of agents with their drafts."""

from app.domain.platform.drafts import api as drafts
from db import fast
from db.fast import Row, tenant_of
from db.session import Tx

from .schemas import UpdateAgent

_FIND = f"""
SELECT a.tenant_id, a.version, {", ".join(f"a.{name}" for name in UpdateAgent.__struct_fields__)},
       draft.*
FROM agents a {drafts.join_sql("agent", "a")}
WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.id = $2
"""


async def find(tx: Tx, agent_id: str) -> Row | None:
    """Returns the agent's fields, and its draft's, or nulls."""
    return await fast.row(tx, tenant_of(tx), _FIND, agent_id)
