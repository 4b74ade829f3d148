"""The webhooks' SQL. Leaves out subscriptions' own addresses, which are in the same table."""

from sqlalchemy import Select, select

from app.kit import paging, quota
from app.kit.paging import Page
from db.counting import Total
from db.models import Webhook
from db.session import Tx

MAX_WEBHOOKS = 500
_SORTABLE = {
    "url": Webhook.url,
    "created_at": Webhook.created_at,
    "updated_at": Webhook.updated_at,
}


def _webhooks() -> Select[Webhook]:
    return select(Webhook).where(Webhook.subscription_id.is_(None))


async def list_page(
    tx: Tx, page: Page, *, active: bool | None, sort: str | None
) -> tuple[list[Webhook], Total]:
    statement = _webhooks()
    if active is not None:
        statement = statement.where(Webhook.active == active)
    ordering = paging.order(sort, _SORTABLE, "-created_at", Webhook.id)
    return await paging.fetch(tx, statement, page, ordering)


async def find(tx: Tx, webhook_id: str, *, for_update: bool = False) -> Webhook | None:
    session = await tx.session()
    webhook = await session.get(Webhook, webhook_id, with_for_update=for_update)
    return webhook if webhook is not None and webhook.subscription_id is None else None


async def check_quota(tx: Tx, tenant_id: str) -> None:
    conditions = (Webhook.tenant_id == tenant_id, Webhook.subscription_id.is_(None))
    await quota.check(tx, Webhook, MAX_WEBHOOKS, "webhooks", *conditions)
