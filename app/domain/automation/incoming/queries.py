"""SQL of incoming webhooks and their payloads."""

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import IncomingWebhook
from db.session import Tx
from db.views import View

from .schemas import IncomingView, PayloadView

MAX_WEBHOOKS = 500
_SORT_ORDERS = SortOrders(
    "-created_at",
    IncomingWebhook.id,
    name=IncomingWebhook.name,
    slug=IncomingWebhook.slug,
    created_at=IncomingWebhook.created_at,
    updated_at=IncomingWebhook.updated_at,
)
_VIEW = View(IncomingView, computed=("url", "verification"))
_COLUMNS = f"{_VIEW.columns}, scheme, header"
_FIND = f"""
SELECT {_COLUMNS} FROM incoming_webhooks WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""
_EXISTS = "SELECT 1 FROM incoming_webhooks WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"

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

_PAYLOAD = View(PayloadView, computed=("payload",), size_bytes="octet_length(body)")
_FIND_PAYLOAD = f"""
SELECT {_PAYLOAD.columns}, body FROM incoming_payloads
WHERE ($1::text IS NULL OR tenant_id = $1) AND webhook_id = $2 AND id = $3
"""
_PAYLOAD_COLUMNS = f"""
{_PAYLOAD.columns}, CASE WHEN octet_length(body) <= {LISTED_BYTES} THEN body END AS body
"""
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


async def list_payloads(tx: Tx, webhook_id: str, page: Page) -> tuple[list[Row], Total]:
    where = Where(tenant_of(tx))
    where.add("webhook_id = $n", webhook_id)
    order = "created_at DESC, id DESC"
    return await paging.fetch_rows(
        tx, _PAYLOAD_COLUMNS, "incoming_payloads", where, order, page, tenant_is_implied=True
    )


async def find_payload(tx: Tx, webhook_id: str, payload_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_PAYLOAD, webhook_id, payload_id)


async def exists(tx: Tx, webhook_id: str) -> bool:
    return await fast.value(tx, tenant_of(tx), _EXISTS, webhook_id) is not None


async def find_view(tx: Tx, webhook_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND, webhook_id)


async def list_webhooks(
    tx: Tx, page: Page, *, active: bool | None, sort: str | None
) -> tuple[list[Row], Total]:
    where = Where(tenant_of(tx))
    where.equal("active", active)
    order = _SORT_ORDERS.sql(sort)
    return await paging.fetch_rows(tx, _COLUMNS, "incoming_webhooks", where, order, page)


build_view, build_payload = _VIEW.build, _PAYLOAD.build


async def check_quota(tx: Tx, tenant_id: str) -> None:
    of_tenant = IncomingWebhook.tenant_id == tenant_id
    await quota.check(tx, IncomingWebhook, MAX_WEBHOOKS, "incoming webhooks", of_tenant)
