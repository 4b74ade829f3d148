"""The subscriptions' SQL: who wants an event, and how often each got one."""

from app.kit.work import KINDS
from db import fast
from db.fast import Row
from db.session import Tx

_EVENT = """
SELECT id AS event_id, type AS event_type, correlation_id, created_at AS told_at, depth, root_id,
       test, data::text AS data
FROM event_log
WHERE tenant_id = $1 AND id = $2
"""
_OFFSPRING = "SELECT offspring FROM event_log WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE"
_ADD_OFFSPRING = """
UPDATE event_log SET offspring = offspring + $3 WHERE tenant_id = $1 AND id = $2
"""
# Who delivers to a webhook that is switched off wants nothing, for as long as it is.
_WANTING = """
SELECT s.id, s.action_type, s.filters::text AS filters, w.id AS endpoint_id
FROM event_subscriptions s
LEFT JOIN webhooks w ON w.tenant_id = s.tenant_id AND (
    w.subscription_id = s.id
    OR w.id = s.action_config->>'webhook_id' AND w.subscription_id IS NULL)
WHERE s.tenant_id = $1 AND s.event_type = $2 AND s.active AND w.active IS DISTINCT FROM false
ORDER BY s.id
"""
# One statement for all of them; an event that is handed out twice adds none.
_ADD_ACTIONS = f"""
INSERT INTO work (tenant_id, id, kind, ref_id, dedupe_key, max_attempts, correlation_id,
                  cause_event_id, dispatched_at)
SELECT $1::text, g.work_id, 'events.act', g.id, g.id || ':' || $2::text,
       {KINDS["events.act"].max_attempts}, $3, $2::text,
       CASE WHEN g.number <= $6 THEN now() END
FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS g(id, work_id, number)
ON CONFLICT (kind, dedupe_key) DO NOTHING
RETURNING id
"""  # noqa: S608  # our own text
_COUNT = """
UPDATE event_subscriptions s SET trigger_count = trigger_count + 1, last_triggered_at = now()
FROM (SELECT id FROM event_subscriptions WHERE tenant_id = $1 AND id = ANY($2)
      ORDER BY id FOR UPDATE) hit
WHERE s.id = hit.id
"""
_SWITCH = """
UPDATE event_subscriptions SET active = $3, updated_at = now()
WHERE tenant_id = $1 AND id = ANY($2) AND active <> $3
"""
_OF_WORKFLOW = """
SELECT id, tenant_id, event_type, active FROM event_subscriptions
WHERE ($1::text IS NULL OR tenant_id = $1) AND action_type = 'workflow'
  AND action_config->>'workflow_id' = $2
ORDER BY id FOR UPDATE
"""
_ACTION = """
SELECT action_type, action_config::text AS action_config FROM event_subscriptions
WHERE tenant_id = $1 AND id = $2
"""


async def event(tx: Tx, tenant: str, event_id: str) -> Row | None:
    return await fast.row(tx, tenant, _EVENT, event_id)


async def offspring(tx: Tx, tenant: str, root_id: str) -> int:
    """How much work a chain has made so far; nobody else adds to it until the transaction ends."""
    return int(await fast.value(tx, tenant, _OFFSPRING, root_id) or 0)


async def add_offspring(tx: Tx, tenant: str, root_id: str, count: int) -> None:
    await fast.execute(tx, tenant, _ADD_OFFSPRING, root_id, count)


async def wanting(tx: Tx, tenant: str, event_type: str) -> list[Row]:
    return await fast.rows(tx, tenant, _WANTING, event_type)


async def add_actions(
    tx: Tx, tenant: str, event: Row, ids: list[str], work_ids: list[str], woken: int
) -> list[str]:
    """The work that is new; for the first ones a worker is woken, the others wait for a poller."""
    given = (event["event_id"], event["correlation_id"], ids, work_ids, woken)
    made = await fast.rows(tx, tenant, _ADD_ACTIONS, *given)
    return [row["id"] for row in made]


async def count(tx: Tx, tenant: str, ids: list[str]) -> None:
    await fast.execute(tx, tenant, _COUNT, ids)


async def of_workflow(tx: Tx, tenant: str | None, workflow_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _OF_WORKFLOW, workflow_id)


async def switch(tx: Tx, tenant: str, ids: list[str], *, active: bool) -> int:
    return await fast.execute(tx, tenant, _SWITCH, ids, active)


async def action(tx: Tx, tenant: str, subscription_id: str) -> Row | None:
    return await fast.row(tx, tenant, _ACTION, subscription_id)
