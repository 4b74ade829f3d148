"""Deliveries: creates, lists, shows and redelivers them.

Also exports the functions for endpoints that other areas use.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from app.crypto.keyring import Keyring
from app.domain.messaging.outbox.api import LogFilter
from app.domain.platform.events.api import EmittedEvent
from app.jobs import work
from app.kit.ids import new_id
from app.kit.paging import Flat, Page, flat
from app.services import Services
from app.settings import Settings
from db import dead_work, ledger
from db.fast import Row
from db.models import Webhook
from db.session import Tx

from . import queries, requests
from .endpoints import masked_headers
from .errors import DeliveryNotFound, WebhookInactive
from .queries import DELIVER, EndpointRef
from .schemas import DeliveryView, FullDelivery, RequestView
from .sending import BODY_BYTES, TIMEOUT_SECONDS

# How long a test delivery may wait for a worker, besides the timeout of its request.
_QUEUE_SECONDS = 15.0


class NewDelivery(NamedTuple):
    """A delivery that was created; with a lease token, the caller sends it."""

    delivery_id: str
    work_id: str
    webhook_id: str
    lease_token: str | None


class Leases(msgspec.Struct, frozen=True):
    """Lease tokens by webhook, for deliveries that the caller sends itself."""

    tokens: Mapping[str, str] = {}
    seconds: float = 0.0


async def create(
    tx: Tx,
    tenant_id: str,
    event: EmittedEvent,
    delivery_ids: Mapping[str, str],
    *,
    max_attempts: int,
    leases: Leases | None = None,
) -> list[NewDelivery]:
    """Creates one delivery for each endpoint that has none of this event yet. `delivery_ids` has
    the ids of new deliveries by webhook.
    """
    webhook_ids, ids = list(delivery_ids), list(delivery_ids.values())
    work_ids = [new_id("wrk") for _ in ids]
    leases = leases or Leases()
    tokens = [leases.tokens.get(webhook_id) for webhook_id in webhook_ids]
    columns = (event.id, event.type, event.correlation_id, ids, webhook_ids, work_ids, max_attempts)
    rows = await queries.add(tx, tenant_id, *columns, tokens, leases.seconds)
    return [NewDelivery(row["ref_id"], row["id"], row["lane"], row["lease_token"]) for row in rows]


async def endpoints_for(
    tx: Tx, tenant_id: str, event_type: str, webhook_ids: list[str]
) -> dict[str, Row]:
    """Returns the endpoints that get an event, by id: active webhooks for its type, and those that
    subscriptions name.
    """
    rows = await queries.find_endpoints(tx, tenant_id, event_type, webhook_ids)
    return {row["webhook_id"]: row for row in rows}


async def list_page(
    tx: Tx, endpoint: EndpointRef, filters: LogFilter, page: Page
) -> Flat[DeliveryView]:
    views, total = await queries.list_page(tx, endpoint, filters, page)
    return flat(views, total, page)


async def find(
    tx: Tx, keyring: Keyring, endpoint: EndpointRef, delivery_id: str
) -> FullDelivery | None:
    row = await queries.find_full(tx, endpoint, delivery_id)
    if row is None:
        return None
    body = requests.encode_body(row) if row["emitted_at"] is not None else b""
    text = body[:BODY_BYTES].decode(errors="ignore")
    request = RequestView(row["url"], _build_headers(keyring, row), text)
    return queries.build_full(row, request=request)


async def redeliver(tx: Tx, settings: Settings, webhook: Webhook, delivery_id: str) -> DeliveryView:
    """Sends it at once, then by the schedule; a pending retry is only made due earlier."""
    before = await _find(tx, webhook, delivery_id)
    await ledger.lock(tx, webhook.tenant_id, before["work_id"])
    row = await _find(tx, webhook, delivery_id, for_update=True)
    if row["work_id"] != before["work_id"]:
        # A concurrent request has redelivered it.
        return queries.build_view(row)
    if not webhook.active:
        raise WebhookInactive("This webhook is not active; set `active` to true first")
    work_id = row["work_id"]
    is_pending = row["status"] == "pending"
    if not is_pending or not await ledger.run_now(tx, webhook.tenant_id, work_id):
        work_id = new_id("wrk")
        max_attempts = len(settings.webhook_retry_delays)
        await queries.restart(tx, webhook.tenant_id, delivery_id, work_id, max_attempts)
        await dead_work.dismiss(tx, webhook.tenant_id, [row["work_id"]])
    tx.wake(DELIVER.name, work_id)
    return queries.build_view(await _find(tx, webhook, delivery_id))


async def wait_for(services: Services, webhook: Webhook, delivery: NewDelivery) -> DeliveryView:
    """Waits until a worker has sent a delivery, which was committed before this is called."""
    seconds = TIMEOUT_SECONDS + _QUEUE_SECONDS
    tenant_id, work_id = webhook.tenant_id, delivery.work_id
    await work.wait(services.db, services.doorbell, tenant_id, work_id, seconds)
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        return queries.build_view(await _find(tx, webhook, delivery.delivery_id))


async def _find(tx: Tx, webhook: Webhook, delivery_id: str, *, for_update: bool = False) -> Row:
    ids = (webhook.tenant_id, webhook.id, delivery_id)
    row = await queries.find(tx, *ids, for_update=for_update)
    if row is None:
        raise not_found(delivery_id)
    return row


def not_found(delivery_id: str) -> DeliveryNotFound:
    return DeliveryNotFound(f"This webhook has no delivery {delivery_id[:64]}")


def _build_headers(keyring: Keyring, row: Row) -> dict[str, str]:
    return {
        **masked_headers(keyring, row["tenant_id"], row["webhook_id"], row["keys"]),
        "Content-Type": "application/json",
        "X-Service-Event-Id": row["event_id"],
        "X-Service-Event-Type": row["event_type"],
        "webhook-id": row["event_id"],
    }
