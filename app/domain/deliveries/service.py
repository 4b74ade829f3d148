"""Deliveries: creates, lists, shows and redelivers them.

Also exports the functions for endpoints that other areas use.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from app.domain.deliveries import queries, requests
from app.domain.deliveries.endpoints import (
    change_headers,
    check_move,
    check_url,
    new_endpoint,
    open_keys,
    origin_of,
    renew_secret,
    reset_health,
)
from app.domain.deliveries.errors import DeliveryNotFound, WebhookInactive
from app.domain.deliveries.queries import DELIVER
from app.domain.deliveries.requests import DeliveryRequest, encode_body, new_request
from app.domain.deliveries.schemas import (
    AttemptView,
    DeliveryView,
    FullDelivery,
    RequestView,
    Status,
)
from app.domain.deliveries.sending import BODY_BYTES, TIMEOUT_SECONDS
from app.domain.events.service import EmittedEvent
from app.kit import headers, work
from app.kit.crypto import Keyring
from app.kit.ids import new_id
from app.kit.paging import Flat, Page, flat
from app.services import Services
from app.settings import Settings
from db import ledger
from db.fast import Row
from db.models import Webhook
from db.session import Tx

__all__ = [
    "DELIVER",
    "DeliveryFilter",
    "DeliveryRequest",
    "Leases",
    "NewDelivery",
    "change_headers",
    "check_move",
    "check_url",
    "create",
    "encode_body",
    "endpoints_for",
    "get",
    "list_page",
    "new_endpoint",
    "new_request",
    "on_dead",
    "open_keys",
    "origin_of",
    "redeliver",
    "renew_secret",
    "reset_health",
    "wait_for",
]

# How long a test delivery may wait for a worker, besides the timeout of its request.
_QUEUE_SECONDS = 15.0


class DeliveryFilter(msgspec.Struct, frozen=True):
    status: Status | None = None
    since: datetime | None = None
    until: datetime | None = None


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
    webhook_ids: list[str],
    *,
    max_attempts: int,
    leases: Leases | None = None,
) -> list[NewDelivery]:
    """Creates one delivery for each endpoint that has none of this event yet."""
    ids = [new_id("dlv") for _ in webhook_ids]
    work_ids = [new_id("wrk") for _ in webhook_ids]
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
    tx: Tx, webhook: Webhook, filters: DeliveryFilter, page: Page
) -> Flat[DeliveryView]:
    columns = (filters.status, filters.since, filters.until)
    rows, total = await queries.list_page(tx, webhook.tenant_id, webhook.id, *columns, page)
    return flat([_view(row) for row in rows], total, page)


async def get(tx: Tx, keyring: Keyring, webhook: Webhook, delivery_id: str) -> FullDelivery:
    row = await _find(tx, webhook, delivery_id)
    event = await queries.find_event(tx, webhook.tenant_id, row["event_id"])
    attempts = await queries.list_attempts(tx, webhook.tenant_id, delivery_id)
    body = requests.encode_body(event) if event is not None else b""
    text = body[:BODY_BYTES].decode(errors="ignore")
    request = RequestView(webhook.url, _headers(keyring, webhook, row), text)
    return FullDelivery(**_fields(row), request=request, attempts=[_attempt(a) for a in attempts])


async def redeliver(tx: Tx, settings: Settings, webhook: Webhook, delivery_id: str) -> DeliveryView:
    """Sends it at once, then by the schedule; a pending retry is only made due earlier."""
    before = await _find(tx, webhook, delivery_id)
    await ledger.lock(tx, webhook.tenant_id, before["work_id"])
    row = await _find(tx, webhook, delivery_id, for_update=True)
    if row["work_id"] != before["work_id"]:
        # A concurrent request has redelivered it.
        return _view(row)
    if not webhook.active:
        raise WebhookInactive("This webhook is not active; set `active` to true first")
    work_id = row["work_id"]
    is_pending = row["status"] == "pending"
    if not is_pending or not await ledger.run_now(tx, webhook.tenant_id, work_id):
        work_id = new_id("wrk")
        max_attempts = len(settings.webhook_retry_delays)
        await queries.restart(tx, webhook.tenant_id, delivery_id, work_id, max_attempts)
    tx.wake(DELIVER.name, work_id)
    return _view(await _find(tx, webhook, delivery_id))


async def wait_for(services: Services, webhook: Webhook, delivery: NewDelivery) -> DeliveryView:
    """Waits until a worker has sent a delivery, which was committed before this is called."""
    seconds = TIMEOUT_SECONDS + _QUEUE_SECONDS
    tenant_id, work_id = webhook.tenant_id, delivery.work_id
    await work.wait(services.db, services.doorbell, tenant_id, work_id, seconds)
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        return _view(await _find(tx, webhook, delivery.delivery_id))


async def on_dead(tx: Tx, tenant_id: str, delivery_id: str, error: str) -> None:
    """Marks a delivery as failed whose work is dead without an outcome."""
    await queries.fail(tx, tenant_id, delivery_id, error)


async def _find(tx: Tx, webhook: Webhook, delivery_id: str, *, for_update: bool = False) -> Row:
    ids = (webhook.tenant_id, webhook.id, delivery_id)
    row = await queries.find(tx, *ids, for_update=for_update)
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
    keys = open_keys(keyring, webhook)
    return {
        **(headers.mask(keys.headers) if keys is not None else {}),
        "Content-Type": "application/json",
        "X-Service-Event-Id": row["event_id"],
        "X-Service-Event-Type": row["event_type"],
        "webhook-id": row["event_id"],
    }
