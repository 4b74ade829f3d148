"""Subscriptions: which action an event triggers."""

from typing import Any

from app.context import RequestContext
from app.domain.area import Areas
from app.domain.automation.workflows import api as workflows
from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.deliveries.api import EndpointRef
from app.domain.messaging.webhooks import api as webhooks
from app.domain.messaging.webhooks.errors import WebhookNotFound
from app.domain.platform.events import api as events
from app.kit import paging, validation
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.views import build_view
from app.net.secret_fields import HEADERS
from db import ledger
from db.fast import tenant_of
from db.models import EventSubscription, Webhook
from db.session import Tx

from . import actions, fan_out, filters, queries
from .actions import WebhookActionConfig, WorkflowConfig
from .errors import SubscriptionNotFound
from .events import SubscriptionCreated, SubscriptionDeleted, SubscriptionUpdated
from .queries import SubscriptionFilter
from .schemas import (
    ChangedSubscription,
    CreateSubscription,
    SubscriptionView,
    Switched,
    TestEmitted,
    TestEvent,
    UpdateSubscription,
)

_MAX_DEPTH = 32
_MAX_TEST_BYTES = 64 * 1024


async def list_page(tx: Tx, page: Page, filters: SubscriptionFilter) -> Paged[SubscriptionView]:
    views, total = await queries.list_page(tx, page, filters)
    return paging.paged(views, total, page)


async def get(tx: Tx, subscription_id: str) -> SubscriptionView:
    view = await queries.find_view(tx, subscription_id)
    if view is None:
        raise _not_found(subscription_id)
    return view


async def find(tx: Tx, subscription_id: str, *, for_update: bool = False) -> EventSubscription:
    subscription = await queries.find(tx, subscription_id, for_update=for_update)
    if subscription is None:
        raise _not_found(subscription_id)
    return subscription


def _not_found(subscription_id: str) -> SubscriptionNotFound:
    return SubscriptionNotFound(f"There is no subscription {subscription_id[:64]}")


async def find_endpoint(tx: Tx, subscription_id: str) -> EndpointRef:
    """Returns the endpoint of its own address. A webhook that it names has its own deliveries."""
    row = await queries.find_endpoint(tx, subscription_id)
    if row is None:
        raise _not_found(subscription_id)
    if row["endpoint_id"] is None:
        webhook_id = row["webhook_id"]
        hint = f"; see the executions of the webhook {webhook_id}" if webhook_id else ""
        raise WebhookNotFound(f"This subscription delivers to no address of its own{hint}")
    return EndpointRef(row["endpoint_id"], subscription_id)


async def load_endpoint(tx: Tx, subscription_id: str) -> Webhook:
    """Returns the endpoint of its own address, to change it or to deliver to it."""
    endpoint = await queries.find_own_endpoint(tx, subscription_id)
    if endpoint is None:
        await find_endpoint(tx, subscription_id)
        raise _not_found(subscription_id)
    return endpoint


async def _lock(
    tx: Tx, subscription_id: str, *, cancels_deliveries: bool = False
) -> EventSubscription:
    """Locks a subscription with its own address and pending work, in the order of the workers:
    work, address, subscription.
    """
    endpoint = await queries.find_own_endpoint(tx, subscription_id)
    if endpoint is not None:
        if cancels_deliveries:
            kind = deliveries.DELIVER.name
            await ledger.cancel_lane(tx, endpoint.tenant_id, kind, endpoint.id)
        await queries.find_own_endpoint(tx, subscription_id, for_update=True)
    return await find(tx, subscription_id, for_update=True)


async def create(context: RequestContext, data: CreateSubscription) -> ChangedSubscription:
    tx, tenant_id = context.tx, context.principal.home
    await actions.check_templates(context.services, tenant_id, data.action_config)
    await queries.check_quota(tx, tenant_id)
    events.check_type(context.services.get(Areas), data.event_type)
    config = await _validate(context, tenant_id, data.action_type, data.action_config)
    if data.filters:
        filters.validate(data.filters)
    subscription = EventSubscription(
        id=new_id("sub"),
        tenant_id=tenant_id,
        event_type=data.event_type,
        action_type=data.action_type,
        action_config=_build_stored_config(config),
        filters=data.filters or None,
        active=data.active,
        created_by=context.principal.user_id,
    )
    session = await tx.session()
    session.add(subscription)
    await session.flush()
    secret, _ = await _save_endpoint(context, subscription, config)
    created = SubscriptionCreated(subscription.id, data.event_type, data.action_type)
    await events.emit(tx, created, tenant_id=tenant_id)
    return build_view(ChangedSubscription, subscription, secret=secret)


async def update(
    context: RequestContext, subscription_id: str, data: UpdateSubscription
) -> ChangedSubscription:
    tx, values = context.tx, validation.set_fields(data)
    if "action_config" in values:
        tenant_id = context.principal.home
        await actions.check_templates(context.services, tenant_id, values["action_config"])
    drops_address = "action_config" in values and values["action_config"].get("url") is None
    subscription = await _lock(tx, subscription_id, cancels_deliveries=drops_address)
    if "event_type" in values:
        events.check_type(context.services.get(Areas), values["event_type"])
    if values.get("filters") is not None:
        filters.validate(values["filters"])
        values["filters"] = values["filters"] or None
    config = await _new_config(context, subscription, values)
    secret, also_changed = None, []
    if config is not None:
        secret, has_new_headers = await _save_endpoint(context, subscription, config)
        values["action_config"] = _build_stored_config(config)
        if has_new_headers and values["action_config"] == subscription.action_config:
            # The masks are equal, but the masked values differ.
            also_changed = ["action_config"]
    if values.get("active", subscription.active) != subscription.active:
        await _switch_endpoint(tx, subscription, active=values["active"])
    await events.save_changes(
        tx,
        subscription,
        values,
        lambda names: _build_updated_event(subscription, names),
        also_changed=also_changed,
    )
    return build_view(ChangedSubscription, subscription, secret=secret)


async def rotate_secret(context: RequestContext, subscription_id: str) -> ChangedSubscription:
    """Rotates the secret of its own address; the old one also signs for a day."""
    subscription = await _lock(context.tx, subscription_id)
    endpoint = await load_endpoint(context.tx, subscription_id)
    secret = await deliveries.renew_secret(context, endpoint)
    updated = _build_updated_event(subscription, ["secret"])
    await events.emit(context.tx, updated, tenant_id=subscription.tenant_id)
    return build_view(ChangedSubscription, subscription, secret=secret)


async def delete(tx: Tx, subscription_id: str) -> None:
    """Also cancels pending deliveries to its own address."""
    subscription = await _lock(tx, subscription_id, cancels_deliveries=True)
    session = await tx.session()
    await session.delete(subscription)
    await session.flush()
    deleted = SubscriptionDeleted(
        subscription.id, subscription.event_type, subscription.action_type
    )
    await events.emit(tx, deleted, tenant_id=subscription.tenant_id)


async def switch(tx: Tx, workflow_id: str, *, active: bool) -> Switched:
    """Activates or deactivates all subscriptions that run this workflow."""
    rows = await queries.lock_of_workflow(tx, tenant_of(tx), workflow_id)
    if not rows:
        await workflows.require(tx, tenant_of(tx), workflow_id)
    updated = 0
    for tenant_id in {row["tenant_id"] for row in rows}:
        ids = [row["id"] for row in rows if row["tenant_id"] == tenant_id]
        updated += await queries.switch(tx, tenant_id, ids, active=active)
    for row in rows:
        if row["active"] != active:
            event = SubscriptionUpdated(row["id"], row["event_type"], "workflow", ["active"])
            await events.emit(tx, event, tenant_id=row["tenant_id"])
    return Switched(workflow_id, updated)


async def emit_test(context: RequestContext, data: TestEvent) -> TestEmitted:
    """Emits an event that is marked as a test and fanned out like any other."""
    areas, tenant_id = context.services.get(Areas), context.principal.home
    events.check_type(areas, data.event_type)
    payload = data.data
    if payload is None:
        payload = areas.event_types[data.event_type].example()
    else:
        validation.check_size("data", payload, _MAX_DEPTH, _MAX_TEST_BYTES)
    triggered = await fan_out.find_triggered(context.tx, tenant_id, data.event_type, payload)
    event = await events.emit_test(context.tx, data.event_type, payload, tenant_id=tenant_id)
    return TestEmitted(event.id, event.correlation_id, len(triggered))


def _build_updated_event(
    subscription: EventSubscription, changed: list[str]
) -> SubscriptionUpdated:
    return SubscriptionUpdated(
        subscription.id, subscription.event_type, subscription.action_type, changed
    )


async def _new_config(
    context: RequestContext, subscription: EventSubscription, values: dict[str, Any]
) -> Any | None:
    """Returns the validated config of an update, or None where the stored one stays."""
    action_type = values.get("action_type", subscription.action_type)
    if "action_config" not in values:
        if action_type != subscription.action_type:
            raise Invalid.field("action_config", f"is needed for an action of type {action_type}")
        return None
    return await _validate(context, subscription.tenant_id, action_type, values["action_config"])


async def _validate(
    context: RequestContext, tenant_id: str, action_type: str, action_config: dict[str, Any]
) -> Any:
    config = await actions.validate_config(context.tx, tenant_id, action_type, action_config)
    if isinstance(config, WorkflowConfig):
        # Anyone who sets a trigger can start the workflow at any time.
        context.principal.require("workflows:execute")
    if isinstance(config, WebhookActionConfig):
        if config.url is not None:
            deliveries.check_url(context.guard, config.url, "action_config.url")
        elif config.webhook_id is not None:
            await _check_webhook(context.tx, tenant_id, config.webhook_id)
    return config


async def _check_webhook(tx: Tx, tenant_id: str, webhook_id: str) -> None:
    try:
        exists = (await webhooks.find(tx, webhook_id)).tenant_id == tenant_id
    except WebhookNotFound:
        exists = False
    if not exists:
        raise Invalid.field("action_config.webhook_id", "this webhook does not exist")


def _build_stored_config(config: Any) -> dict[str, Any]:
    """Returns the config to store beside the sealed endpoint, with masked headers."""
    values = actions.to_stored(config)
    if values.get("headers"):
        values["headers"] = HEADERS.mask(values["headers"])
    return values


async def _save_endpoint(
    context: RequestContext, subscription: EventSubscription, config: Any
) -> tuple[str | None, bool]:
    """Writes the endpoint of an action with its own address, or deletes it. Returns a new secret,
    and whether other headers are sent from now on.
    """
    url = config.url if isinstance(config, WebhookActionConfig) else None
    endpoint = await queries.find_own_endpoint(context.tx, subscription.id)
    session = await context.tx.session()
    if url is None:
        if endpoint is not None:
            await session.delete(endpoint)
            await session.flush()
        return None, False
    custom_headers, field = config.headers or {}, "action_config.headers"
    if endpoint is not None:
        keyring = context.keyring
        deliveries.check_move(keyring, endpoint, url, custom_headers, field)
        is_changed = deliveries.change_headers(keyring, endpoint, custom_headers, field)
        endpoint.url = url
        await session.flush()
        return None, is_changed
    endpoint, secret = deliveries.new_endpoint(
        context, subscription.tenant_id, url, custom_headers, field
    )
    endpoint.subscription_id, endpoint.active = subscription.id, subscription.active
    session.add(endpoint)
    await session.flush()
    return secret, True


async def _switch_endpoint(tx: Tx, subscription: EventSubscription, *, active: bool) -> None:
    endpoint = await queries.find_own_endpoint(tx, subscription.id)
    if endpoint is not None:
        endpoint.active = active
        deliveries.reset_health(endpoint)
