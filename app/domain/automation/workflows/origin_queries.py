"""SQL of what started an execution, for people who do not know its ids."""

from db import fast
from db.fast import Row
from db.session import Tx
from db.user_names import user_name_sql

# A user may be a super_admin of another tenant.
_FIND = f"""
SELECT w.name AS workflow_name, e.trigger_type,
       CASE e.trigger_type
       WHEN 'manual' THEN (
           SELECT coalesce(
               (SELECT {user_name_sql("u")} FROM users u WHERE u.id = e.started_by),
               (SELECT k.name FROM service_keys k
                WHERE k.tenant_id = e.tenant_id AND k.id = e.started_by)))
       WHEN 'form' THEN (
           SELECT f.name FROM forms f WHERE f.tenant_id = e.tenant_id AND f.id = e.trigger_id)
       WHEN 'webhook' THEN (
           SELECT h.name FROM incoming_webhooks h
           WHERE h.tenant_id = e.tenant_id AND h.id = e.trigger_id)
       WHEN 'event' THEN (
           SELECT s.event_type FROM event_subscriptions s
           WHERE s.tenant_id = e.tenant_id AND s.id = e.trigger_id)
       WHEN 'workflow' THEN (
           SELECT p.name FROM workflow_executions c
           JOIN workflows p ON p.tenant_id = c.tenant_id AND p.id = c.workflow_id
           WHERE c.tenant_id = e.tenant_id AND c.id = e.trigger_id)
       END AS trigger_name
FROM workflow_executions e
JOIN workflows w ON w.tenant_id = e.tenant_id AND w.id = e.workflow_id
WHERE e.tenant_id = $1 AND e.id = $2
"""


async def find(tx: Tx, tenant: str, execution_id: str) -> Row | None:
    """Returns workflow_name, trigger_type and trigger_name."""
    return await fast.row(tx, tenant, _FIND, execution_id)
