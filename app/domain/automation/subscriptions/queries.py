"""The subscriptions' SQL: which of them an event triggers, and how often each was triggered."""

import msgspec
from sqlalchemy import select

from app.domain import quota
from app.domain.platform.events import api as events
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import EventSubscription, Webhook
from db.session import Tx
from db.views import View

from .schemas import SubscriptionView

MAX_SUBSCRIPTIONS = 500
_SORT_ORDERS = SortOrders(
    "-created_at",
    EventSubscription.id,
    event_type=EventSubscription.event_type,
    action_type=EventSubscription.action_type,
    trigger_count=EventSubscription.trigger_count,
    last_triggered_at=EventSubscription.last_triggered_at,
    created_at=EventSubscription.created_at,
    updated_at=EventSubscription.updated_at,
)
_VIEW = View(SubscriptionView)
_FIND_ENDPOINT = """
SELECT w.id AS endpoint_id, s.action_config->>'webhook_id' AS webhook_id
FROM event_subscriptions s
LEFT JOIN webhooks w ON w.subscription_id = s.id AND w.tenant_id = s.tenant_id
WHERE ($1::text IS NULL OR s.tenant_id = $1) AND s.id = $2
"""
_FIND = f"""
SELECT {_VIEW.columns} FROM event_subscriptions
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""

# A subscription to an inactive webhook is not triggered.
_TRIGGERED_BY = """
SELECT s.id, s.action_type, s.filters::text AS filters, w.id AS endpoint_id
FROM event_subscriptions s
LEFT JOIN webhooks w ON w.tenant_id = s.tenant_id AND (
    w.subscription_id = s.id
    OR w.id = s.action_config->>'webhook_id' AND w.subscription_id IS NULL)
WHERE s.tenant_id = $1 AND s.event_type = $2 AND s.active AND w.active IS DISTINCT FROM false
ORDER BY s.id
"""
# One statement for all actions; an event that is fanned out again adds none.
_ADD_ACTIONS = events.RUN_ACTION.insert_sql(
    """unnest($4::text[], $5::text[]) WITH ORDINALITY AS g(id, work_id, number)
ON CONFLICT (kind, dedupe_key) DO NOTHING
RETURNING id""",
    id="g.work_id",
    ref_id="g.id",
    dedupe_key="g.id || ':' || $2::text",
    correlation_id="$3",
    cause_event_id="$2::text",
    dispatched_at="CASE WHEN g.number <= $6 THEN now() END",
)
_COUNT_TRIGGERS = """
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
_SWITCH_OFF_OF_WEBHOOK = """
UPDATE event_subscriptions s SET active = false, updated_at = now()
FROM webhooks w WHERE w.tenant_id = $1 AND w.id = $2 AND s.id = w.subscription_id
"""


async def find_triggered_by(tx: Tx, tenant: str, event_type: str) -> list[Row]:
    return await fast.rows(tx, tenant, _TRIGGERED_BY, event_type)


async def add_actions(
    tx: Tx, tenant: str, event: Row, ids: list[str], work_ids: list[str], woken: int
) -> list[str]:
    """Returns the ids of new work. Workers are woken for the first ones; pollers find the rest."""
    columns = (event["event_id"], event["correlation_id"], ids, work_ids, woken)
    rows = await fast.rows(tx, tenant, _ADD_ACTIONS, *columns)
    return [row["id"] for row in rows]


async def count_triggers(tx: Tx, tenant: str, ids: list[str]) -> None:
    await fast.execute(tx, tenant, _COUNT_TRIGGERS, ids)


async def lock_of_workflow(tx: Tx, tenant: str | None, workflow_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _OF_WORKFLOW, workflow_id)


async def switch(tx: Tx, tenant: str, ids: list[str], *, active: bool) -> int:
    return await fast.execute(tx, tenant, _SWITCH, ids, active)


async def deactivate_by_webhook(tx: Tx, tenant: str, webhook_id: str) -> None:
    """Deactivates the subscription whose own address a disabled webhook is."""
    await fast.execute(tx, tenant, _SWITCH_OFF_OF_WEBHOOK, webhook_id)


async def find_action(tx: Tx, tenant: str, subscription_id: str) -> Row | None:
    return await fast.row(tx, tenant, _ACTION, subscription_id)


class SubscriptionFilter(msgspec.Struct, frozen=True):
    event_type: str | None = None
    action_type: str | None = None
    active: bool | None = None
    sort: str | None = None


async def list_page(
    tx: Tx, page: Page, filters: SubscriptionFilter
) -> tuple[list[SubscriptionView], Total]:
    where = Where(tenant_of(tx))
    where.equal("event_type", filters.event_type)
    where.equal("action_type", filters.action_type)
    where.equal("active", filters.active)
    order = _SORT_ORDERS.sql(filters.sort)
    return await paging.fetch(tx, _VIEW, "event_subscriptions", where, order, page)


async def find_view(tx: Tx, subscription_id: str) -> SubscriptionView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, subscription_id)


async def find(
    tx: Tx, subscription_id: str, *, for_update: bool = False
) -> EventSubscription | None:
    session = await tx.session()
    row: EventSubscription | None = await session.get(
        EventSubscription, subscription_id, with_for_update=for_update
    )
    return row


async def find_endpoint(tx: Tx, subscription_id: str) -> Row | None:
    """Returns the ids of its own address and of the webhook that it names, if it has one."""
    return await fast.row(tx, tenant_of(tx), _FIND_ENDPOINT, subscription_id)


async def find_own_endpoint(
    tx: Tx, subscription_id: str, *, for_update: bool = False
) -> Webhook | None:
    statement = select(Webhook).where(Webhook.subscription_id == subscription_id)
    if for_update:
        # Reads the row again, which may have changed since it was loaded.
        statement = statement.with_for_update().execution_options(populate_existing=True)
    endpoint: Webhook | None = await (await tx.session()).scalar(statement)
    return endpoint


async def check_quota(tx: Tx, tenant_id: str) -> None:
    condition = EventSubscription.tenant_id == tenant_id
    await quota.check(tx, EventSubscription, MAX_SUBSCRIPTIONS, "subscriptions", condition)
