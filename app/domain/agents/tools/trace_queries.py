"""The SQL of executions in a trace."""

from app.domain.area import shown_sql
from db import fast
from db.fast import Row
from db.session import Tx

_SHOWN = shown_sql("e.input", "e.output", order_by="e.executed_at, e.id")
_LIST_EXECUTIONS_BY_CORRELATION = f"""
SELECT e.id, e.work_id, t.name, e.status, e.executed_at, e.execution_time_ms, e.error_message,
       {_SHOWN}
FROM (
    SELECT * FROM tool_executions e
    WHERE e.tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
      AND e.correlation_id = $2
    ORDER BY e.executed_at, e.id LIMIT $3
) e JOIN tools t ON t.id = e.tool_id AND t.tenant_id = e.tenant_id
ORDER BY e.executed_at, e.id
"""


async def list_executions_by_correlation(
    tx: Tx, tenant: str | None, correlation_id: str, limit: int
) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_EXECUTIONS_BY_CORRELATION, correlation_id, limit)
