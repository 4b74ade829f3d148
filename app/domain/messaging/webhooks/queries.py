"""The webhooks' SQL. Leaves out subscriptions' own addresses, which are in the same table."""

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Webhook
from db.session import Tx
from db.views import View

from .schemas import WebhookView

MAX_WEBHOOKS = 500
_SORT_ORDERS = SortOrders(
    "-created_at",
    Webhook.id,
    url=Webhook.url,
    created_at=Webhook.created_at,
    updated_at=Webhook.updated_at,
)
_VIEW = View(WebhookView, computed=("headers", "previous_secret_expires_at"))
_COLUMNS = f"{_VIEW.columns}, tenant_id, keys, previous_until"
_FIND = f"""
SELECT {_COLUMNS} FROM webhooks
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND subscription_id IS NULL
"""
_EXISTS = """
SELECT 1 FROM webhooks
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND subscription_id IS NULL
"""

build_view = _VIEW.build


async def list_page(
    tx: Tx, page: Page, *, active: bool | None, sort: str | None
) -> tuple[list[Row], Total]:
    where = Where(tenant_of(tx), "subscription_id IS NULL")
    where.equal("active", active)
    return await paging.fetch_rows(tx, _COLUMNS, "webhooks", where, _SORT_ORDERS.sql(sort), page)


async def find_row(tx: Tx, webhook_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND, webhook_id)


async def exists(tx: Tx, webhook_id: str) -> bool:
    return await fast.value(tx, tenant_of(tx), _EXISTS, webhook_id) is not None


async def find(tx: Tx, webhook_id: str, *, for_update: bool = False) -> Webhook | None:
    session = await tx.session()
    webhook = await session.get(Webhook, webhook_id, with_for_update=for_update)
    return webhook if webhook is not None and webhook.subscription_id is None else None


async def check_quota(tx: Tx, tenant_id: str) -> None:
    conditions = (Webhook.tenant_id == tenant_id, Webhook.subscription_id.is_(None))
    await quota.check(tx, Webhook, MAX_WEBHOOKS, "webhooks", *conditions)
