"""Outgoing webhooks: which events go to which endpoint."""

from datetime import datetime
from typing import Any

from app.context import RequestContext
from app.domain.area import Areas
from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.deliveries.api import EndpointRef
from app.domain.messaging.deliveries.schemas import DeliveryView, FullDelivery
from app.domain.messaging.outbox.api import LogFilter
from app.domain.platform.events import api as events
from app.kit import clock, paging, validation
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.paging import Flat, Page, Paged
from app.kit.views import build_view
from app.security.principal import Principal
from app.services import Services
from db import ledger
from db.fast import Row
from db.models import Webhook
from db.session import Tx

from . import queries
from .errors import WebhookNotFound
from .events import WebhookCreated, WebhookDeleted, WebhookUpdated
from .schemas import CreateWebhook, UpdateWebhook, WebhookView, WebhookWithSecret


async def list_page(
    context: RequestContext, page: Page, *, active: bool | None, sort: str | None
) -> Paged[WebhookView]:
    rows, total = await queries.list_page(context.tx, page, active=active, sort=sort)
    return paging.paged([_build_view_of_row(context, row) for row in rows], total, page)


async def find(tx: Tx, webhook_id: str, *, for_update: bool = False) -> Webhook:
    webhook = await queries.find(tx, webhook_id, for_update=for_update)
    if webhook is None:
        raise _not_found(webhook_id)
    return webhook


def _not_found(webhook_id: str) -> WebhookNotFound:
    return WebhookNotFound(f"There is no webhook {webhook_id[:64]}")


async def get(context: RequestContext, webhook_id: str) -> WebhookView:
    row = await queries.find_row(context.tx, webhook_id)
    if row is None:
        raise _not_found(webhook_id)
    return _build_view_of_row(context, row)


async def create(context: RequestContext, data: CreateWebhook) -> WebhookWithSecret:
    tx, tenant_id = context.tx, context.principal.home
    await queries.check_quota(tx, tenant_id)
    deliveries.check_url(context.guard, data.url, "url")
    _check_events(context.services.get(Areas), data.events)
    webhook, secret = deliveries.new_endpoint(
        context, tenant_id, data.url, data.headers or {}, "headers"
    )
    webhook.events = list(dict.fromkeys(data.events))
    webhook.active = data.active
    webhook.description = data.description or ""
    session = await tx.session()
    session.add(webhook)
    await session.flush()
    created = WebhookCreated(webhook.id, deliveries.origin_of(webhook.url), webhook.events)
    await events.emit(tx, created, tenant_id=tenant_id)
    return _with_secret(context, webhook, secret)


async def update(context: RequestContext, webhook_id: str, data: UpdateWebhook) -> WebhookView:
    webhook = await find(context.tx, webhook_id, for_update=True)
    values = validation.set_fields(data)
    custom_headers = values.pop("headers") or {} if "headers" in values else None
    if "url" in values:
        deliveries.check_url(context.guard, values["url"], "url")
        deliveries.check_move(context.keyring, webhook, values["url"], custom_headers, "headers")
    if "events" in values:
        _check_events(context.services.get(Areas), values["events"])
        values["events"] = list(dict.fromkeys(values["events"]))
    if "description" in values:
        values["description"] = values["description"] or ""
    if "active" in values and values["active"] != webhook.active:
        deliveries.reset_health(webhook)
    also_changed = []
    if custom_headers is not None and deliveries.change_headers(
        context.keyring, webhook, custom_headers, "headers"
    ):
        also_changed.append("headers")
    await events.save_changes(
        context.tx,
        webhook,
        values,
        lambda names: _build_updated_event(webhook, names),
        also_changed=also_changed,
    )
    return _view(context, webhook)


async def rotate_secret(context: RequestContext, webhook_id: str) -> WebhookWithSecret:
    webhook = await find(context.tx, webhook_id, for_update=True)
    secret = await deliveries.renew_secret(context, webhook)
    await events.emit(
        context.tx, _build_updated_event(webhook, ["secret"]), tenant_id=webhook.tenant_id
    )
    return _with_secret(context, webhook, secret)


async def delete(tx: Tx, webhook_id: str) -> None:
    """Pending deliveries are cancelled, and the log of deliveries is deleted with it."""
    webhook = await find(tx, webhook_id)
    await ledger.cancel_lane(tx, webhook.tenant_id, deliveries.DELIVER.name, webhook.id)
    # Locked after its work, in the order of the workers; it may have been deleted meanwhile.
    webhook = await find(tx, webhook_id, for_update=True)
    session = await tx.session()
    await session.delete(webhook)
    await session.flush()
    deleted = WebhookDeleted(webhook.id, deliveries.origin_of(webhook.url))
    await events.emit(tx, deleted, tenant_id=webhook.tenant_id)


async def send_test(
    services: Services, principal: Principal, webhook_id: str, event_type: str
) -> DeliveryView:
    """Sends the type's example once, through a worker, to this endpoint alone."""
    areas = services.get(Areas)
    events.check_type(areas, event_type)
    async with services.db.tx(principal.scope) as tx:
        webhook = await find(tx, webhook_id)
        tenant_id, example = webhook.tenant_id, areas.event_types[event_type].example()
        event = await events.emit_test(
            tx, event_type, example, tenant_id=tenant_id, is_routed=False
        )
        (delivery,) = await deliveries.create(
            tx, tenant_id, event, {webhook_id: new_id("dlv")}, max_attempts=1
        )
        tx.wake(deliveries.DELIVER.name, delivery.work_id)
    return await deliveries.wait_for(services, webhook, delivery)


def _build_updated_event(webhook: Webhook, changed: list[str]) -> WebhookUpdated:
    return WebhookUpdated(webhook.id, deliveries.origin_of(webhook.url), changed)


def _check_events(areas: Areas, names: list[str]) -> None:
    Invalid.check(
        (f"events.{index}", events.describe_unknown(areas, name))
        for index, name in enumerate(names)
        if name not in areas.event_types
    )


def _build_view_of_row(context: RequestContext, row: Row) -> WebhookView:
    ids = (row["tenant_id"], row["id"])
    computed = _build_computed_fields(context, *ids, row["keys"], row["previous_until"])
    return queries.build_view(row, **computed)


def _view(context: RequestContext, webhook: Webhook) -> WebhookView:
    return build_view(WebhookView, webhook, **_build_fields(context, webhook))


def _with_secret(context: RequestContext, webhook: Webhook, secret: str) -> WebhookWithSecret:
    computed = _build_fields(context, webhook)
    return build_view(WebhookWithSecret, webhook, secret=secret, **computed)


def _build_fields(context: RequestContext, webhook: Webhook) -> dict[str, Any]:
    ids = (webhook.tenant_id, webhook.id)
    return _build_computed_fields(context, *ids, webhook.keys, webhook.previous_until)


def _build_computed_fields(
    context: RequestContext,
    tenant_id: str,
    webhook_id: str,
    sealed_keys: bytes,
    previous_until: datetime | None,
) -> dict[str, Any]:
    is_current = previous_until is not None and previous_until > clock.now()
    return {
        "headers": deliveries.masked_headers(context.keyring, tenant_id, webhook_id, sealed_keys),
        "previous_secret_expires_at": previous_until if is_current else None,
    }


# Deliveries


async def list_deliveries(
    tx: Tx, webhook_id: str, filters: LogFilter, page: Page
) -> Flat[DeliveryView]:
    listed = await deliveries.list_page(tx, EndpointRef(webhook_id), filters, page)
    if not listed.data:
        await _require(tx, webhook_id)
    return listed


async def get_delivery(
    tx: Tx, services: Services, webhook_id: str, delivery_id: str
) -> FullDelivery:
    delivery = await deliveries.find(tx, services.keyring, EndpointRef(webhook_id), delivery_id)
    if delivery is None:
        await _require(tx, webhook_id)
        raise deliveries.not_found(delivery_id)
    return delivery


async def _require(tx: Tx, webhook_id: str) -> None:
    """Raises WebhookNotFound unless the webhook exists."""
    if not await queries.exists(tx, webhook_id):
        raise _not_found(webhook_id)
