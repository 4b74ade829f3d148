"""Deliveries as people see them: the log, one of them in full, trying out, and once more."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from app.domain.events import catalogue
from app.domain.events import service as events
from app.domain.events.service import Told
from app.domain.webhooks import headers, keys, parcels, queries
from app.domain.webhooks.errors import DeliveryNotFound, WebhookInactive
from app.domain.webhooks.schemas import (
    AttemptView,
    DeliveryView,
    FullDelivery,
    RequestView,
    Status,
)
from app.domain.webhooks.sending import BODY_BYTES, TIMEOUT_SECONDS
from app.domain.webhooks.service import find
from app.http.errors import Invalid
from app.http.paging import Flat, Page, flat
from app.kit import work
from app.kit.crypto import CannotOpen, Keyring
from app.kit.ids import new_id
from app.parts import Parts
from app.settings import Settings
from db.fast import Row
from db.models import Webhook
from db.session import Scope, Tx

# How long a trial may wait for a worker, besides its own time.
_QUEUE_SECONDS = 15.0


class Filter(msgspec.Struct, frozen=True):
    status: Status | None = None
    since: datetime | None = None
    until: datetime | None = None


class Begun(NamedTuple):
    delivery_id: str
    work_id: str
    webhook_id: str
    lease_token: str | None


class Leases(msgspec.Struct, frozen=True):
    """Endpoints whose deliveries begin in the hands of whoever writes them: tokens by webhook."""

    tokens: Mapping[str, str] = {}
    seconds: float = 0.0


async def begin(
    tx: Tx,
    tenant_id: str,
    event: Told,
    webhook_ids: list[str],
    *,
    most: int,
    leases: Leases | None = None,
) -> list[Begun]:
    """One delivery for each endpoint that has none of this event yet."""
    ids = [new_id("dlv") for _ in webhook_ids]
    works = [new_id("wrk") for _ in webhook_ids]
    held = leases or Leases()
    tokens = [held.tokens.get(webhook_id) for webhook_id in webhook_ids]
    given = (event.id, event.type, event.correlation_id, ids, webhook_ids, works, most)
    made = await queries.add(tx, tenant_id, *given, tokens, held.seconds)
    return [Begun(row["ref_id"], row["id"], row["lane"], row["lease_token"]) for row in made]


async def endpoints(tx: Tx, tenant_id: str, event_type: str, named: list[str]) -> dict[str, Row]:
    """Who gets an event: webhooks for its type, and those that subscriptions name."""
    found = await queries.endpoints(tx, tenant_id, event_type, named)
    return {row["webhook_id"]: row for row in found}


async def page_of(tx: Tx, webhook: Webhook, wanted: Filter, page: Page) -> Flat[DeliveryView]:
    filters = (wanted.status, wanted.since, wanted.until)
    rows, total = await queries.page_of(tx, webhook.tenant_id, webhook.id, *filters, page)
    return flat([_view(row) for row in rows], total.total, page, exact=total.exact)


async def get(tx: Tx, keyring: Keyring, webhook: Webhook, delivery_id: str) -> FullDelivery:
    row = await _one(tx, webhook, delivery_id)
    event = await queries.event(tx, webhook.tenant_id, row["event_id"])
    attempts = await queries.attempts(tx, webhook.tenant_id, delivery_id)
    body = parcels.body_of(event) if event is not None else b""
    shown = body[:BODY_BYTES].decode(errors="ignore")
    request = RequestView(webhook.url, _headers(keyring, webhook, row), shown)
    return FullDelivery(**_fields(row), request=request, attempts=[_attempt(a) for a in attempts])


async def redeliver(tx: Tx, settings: Settings, webhook: Webhook, delivery_id: str) -> DeliveryView:
    """At once, and then by the schedule; one that waits for its next attempt only comes earlier."""
    seen = await _one(tx, webhook, delivery_id)
    await queries.lock_work(tx, webhook.tenant_id, seen["work_id"])
    row = await _one(tx, webhook, delivery_id, for_update=True)
    if row["work_id"] != seen["work_id"]:
        # Somebody else did the same just now.
        return _view(row)
    if not webhook.active:
        raise WebhookInactive("This webhook is not active; set `active` to true first")
    work_id = row["work_id"]
    waits = row["status"] == "pending"
    if not waits or not await queries.hurry(tx, webhook.tenant_id, work_id):
        work_id = new_id("wrk")
        most = len(settings.webhook_retry_delays)
        await queries.again(tx, webhook.tenant_id, delivery_id, work_id, most)
    tx.wake("webhooks.deliver", work_id)
    return _view(await _one(tx, webhook, delivery_id))


async def test(parts: Parts, scope: Scope, webhook_id: str, event_type: str) -> DeliveryView:
    """The type's example, sent by a worker to this endpoint alone, once."""
    if event_type not in catalogue.CATALOGUE:
        raise Invalid.field("event_type", "is no event type; GET /api/v1/event-types lists them")
    async with parts.db.tx(scope) as tx:
        webhook = await find(tx, webhook_id)
        tenant_id = webhook.tenant_id
        example = catalogue.example_of(catalogue.CATALOGUE[event_type])
        told = await events.emit_test(tx, event_type, example, tenant_id=tenant_id, routed=False)
        (begun,) = await begin(tx, tenant_id, told, [webhook_id], most=1)
        tx.wake("webhooks.deliver", begun.work_id)
    seconds = TIMEOUT_SECONDS + _QUEUE_SECONDS
    await work.wait(parts.db, parts.doorbell, tenant_id, begun.work_id, seconds)
    async with parts.db.tx(tenant_id, read_only=True) as tx:
        return _view(await _one(tx, webhook, begun.delivery_id))


async def bury(tx: Tx, tenant_id: str, delivery_id: str, error: str) -> None:
    await queries.bury(tx, tenant_id, delivery_id, error)


async def _one(tx: Tx, webhook: Webhook, delivery_id: str, *, for_update: bool = False) -> Row:
    ids = (webhook.tenant_id, webhook.id, delivery_id)
    row = await queries.one(tx, *ids, for_update=for_update)
    if row is None:
        raise DeliveryNotFound(f"This webhook has no delivery {delivery_id[:64]}")
    return row


def _fields(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in DeliveryView.__struct_fields__}


def _view(row: Row) -> DeliveryView:
    return DeliveryView(**_fields(row))


def _attempt(row: Row) -> AttemptView:
    return AttemptView(
        row["number"],
        row["url"],
        "delivered" if row["error"] is None else "failed",
        row["response_code"],
        row["response_time_ms"],
        row["response_body"],
        row["error"],
        row["created_at"],
    )


def _headers(keyring: Keyring, webhook: Webhook, row: Row) -> dict[str, str]:
    try:
        opened = keys.read(keyring, webhook.tenant_id, webhook.id, webhook.keys)
        custom = headers.shown(opened.headers)
    except CannotOpen:
        custom = {}
    return {
        **custom,
        "Content-Type": "application/json",
        "X-Service-Event-Id": row["event_id"],
        "X-Service-Event-Type": row["event_type"],
        "webhook-id": row["event_id"],
    }
