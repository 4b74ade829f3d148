"""SQL of incoming webhooks and their payloads."""

from sqlalchemy import select

from app.kit import paging, quota
from app.kit.paging import Page
from db import counting, fast
from db.counting import Total
from db.fast import Row
from db.models import IncomingWebhook
from db.session import Tx

MAX_WEBHOOKS = 500
_SORTABLE = {
    "name": IncomingWebhook.name,
    "slug": IncomingWebhook.slug,
    "created_at": IncomingWebhook.created_at,
    "updated_at": IncomingWebhook.updated_at,
}

_BY_SLUG = """
SELECT w.id, w.tenant_id, w.name, w.workflow_id, w.scheme, w.header, w.secret, t.plan,
       t.limits::text AS limits
FROM incoming_webhooks w JOIN tenants t ON t.id = w.tenant_id
WHERE w.slug = $1 AND w.active
"""
_SLUG_EXISTS = "SELECT 1 FROM incoming_webhooks WHERE slug = $1"
_INSERT_PAYLOAD = """
INSERT INTO incoming_payloads (tenant_id, id, webhook_id, body, headers, source_ip, replay_of)
VALUES ($1, $2, $3, $4, $5::json, $6, $7)
"""
_SET_EXECUTION = """
UPDATE incoming_payloads SET workflow_execution_id = $3 WHERE tenant_id = $1 AND id = $2
"""
# A list and an event contain payloads up to this size; longer ones are read one at a time.
LISTED_BYTES = 32 * 1024

_COLUMNS = """
id, octet_length(body) AS size_bytes, headers::text AS headers, source_ip, workflow_execution_id,
replay_of, created_at
"""
_OF_WEBHOOK = """
FROM incoming_payloads WHERE webhook_id = $2 AND tenant_id IS NOT DISTINCT FROM $1
"""
# A webhook has one tenant. With both conditions the planner estimates too low.
_ESTIMATED_FROM = "FROM incoming_payloads WHERE webhook_id = $2 AND $1::text IS NOT NULL"
_PAYLOAD_PAGE = f"""
SELECT {_COLUMNS}, CASE WHEN octet_length(body) <= {LISTED_BYTES} THEN body END AS body
{_OF_WEBHOOK} ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $4
"""
_PAYLOAD = f"SELECT {_COLUMNS}, body {_OF_WEBHOOK} AND id = $3"
# A payload has the id of its event.
PAYLOAD_IDS = "SELECT id FROM incoming_payloads WHERE webhook_id = $2"


async def find_by_slug(tx: Tx, slug: str) -> Row | None:
    """Returns the active webhook of any tenant: the slug determines the tenant."""
    webhook: Row | None = await (await tx.raw()).fetchrow(_BY_SLUG, slug)
    return webhook


async def slug_exists(tx: Tx, slug: str) -> bool:
    """True when a webhook of any tenant has the slug."""
    return bool(await (await tx.raw()).fetchval(_SLUG_EXISTS, slug))


async def insert_payload(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _INSERT_PAYLOAD, *values)


async def set_execution(tx: Tx, tenant: str, payload_id: str, execution_id: str) -> None:
    await fast.execute(tx, tenant, _SET_EXECUTION, payload_id, execution_id)


async def list_payloads(
    tx: Tx, tenant: str, webhook_id: str, page: Page
) -> tuple[list[Row], Total]:
    total = await counting.count_rows(
        tx, tenant, _OF_WEBHOOK, webhook_id, estimated_from=_ESTIMATED_FROM
    )
    rows = await fast.rows(tx, tenant, _PAYLOAD_PAGE, webhook_id, page.per_page, page.offset)
    return rows, total


async def find_payload(tx: Tx, tenant: str, webhook_id: str, payload_id: str) -> Row | None:
    return await fast.row(tx, tenant, _PAYLOAD, webhook_id, payload_id)


async def list_webhooks(
    tx: Tx, page: Page, *, active: bool | None, sort: str | None
) -> tuple[list[IncomingWebhook], Total]:
    statement = select(IncomingWebhook)
    if active is not None:
        statement = statement.where(IncomingWebhook.active == active)
    ordering = paging.order(sort, _SORTABLE, "-created_at", IncomingWebhook.id)
    return await paging.fetch(tx, statement, page, ordering)


async def check_quota(tx: Tx, tenant_id: str) -> None:
    of_tenant = IncomingWebhook.tenant_id == tenant_id
    await quota.check(tx, IncomingWebhook, MAX_WEBHOOKS, "incoming webhooks", of_tenant)
