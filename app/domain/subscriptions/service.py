"""Subscriptions: what is to be done about events, checked when it is said."""

from typing import Any

import msgspec
from sqlalchemy import select

from app.domain.events import catalogue
from app.domain.events import service as events
from app.domain.events.service import Told
from app.domain.subscriptions import actions, fan_out, filters, queries
from app.domain.subscriptions.actions import WebhookConfig
from app.domain.subscriptions.errors import SubscriptionNotFound, WorkflowNotFound
from app.domain.subscriptions.events import (
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionUpdated,
)
from app.domain.subscriptions.schemas import (
    ChangedSubscription,
    CreateSubscription,
    SubscriptionView,
    Switched,
    TestEmitted,
    TestEvent,
    UpdateSubscription,
)
from app.domain.webhooks import headers, signing
from app.domain.webhooks import service as webhooks
from app.domain.webhooks.errors import WebhookNotFound
from app.domain.webhooks.keys import Keys
from app.domain.webhooks.service import Desk
from app.http import bodies, paging, quota
from app.http.answers import filled
from app.http.errors import Invalid
from app.http.paging import Page, Paged
from app.kit.ids import new_id
from app.kit.texts import is_deeper
from db import ledger
from db.fast import tenant_of
from db.models import EventSubscription, Webhook
from db.session import Tx

MOST = 500
_DEEPEST = 32
_TEST_BYTES = 64 * 1024
_SORTABLE = {
    "event_type": EventSubscription.event_type,
    "action_type": EventSubscription.action_type,
    "trigger_count": EventSubscription.trigger_count,
    "last_triggered_at": EventSubscription.last_triggered_at,
    "created_at": EventSubscription.created_at,
    "updated_at": EventSubscription.updated_at,
}


async def page_of(
    tx: Tx,
    page: Page,
    *,
    event_type: str | None,
    action_type: str | None,
    active: bool | None,
    sort: str | None,
) -> Paged[SubscriptionView]:
    wanted = select(EventSubscription)
    for column, value in (
        (EventSubscription.event_type, event_type),
        (EventSubscription.action_type, action_type),
        (EventSubscription.active, active),
    ):
        if value is not None:
            wanted = wanted.where(column == value)
    ordering = paging.order(sort, _SORTABLE, "-created_at", EventSubscription.id)
    rows, total = await paging.fetch(tx, wanted, page, ordering)
    return paging.paged([filled(SubscriptionView, row) for row in rows], total, page)


async def find(tx: Tx, subscription_id: str, *, for_update: bool = False) -> EventSubscription:
    session = await tx.session()
    found = await session.get(EventSubscription, subscription_id, with_for_update=for_update)
    if found is None:
        raise SubscriptionNotFound(f"There is no subscription {subscription_id[:64]}")
    return found


async def endpoint_of(tx: Tx, subscription_id: str) -> Webhook:
    """Its own address. A webhook that it names has a log of its own."""
    subscription = await find(tx, subscription_id)
    endpoint = await _own_endpoint(tx, subscription.id)
    if endpoint is None:
        named = subscription.action_config.get("webhook_id")
        where = f"; see the executions of the webhook {named}" if named else ""
        raise WebhookNotFound(f"This subscription delivers to no address of its own{where}")
    return endpoint


async def _own_endpoint(tx: Tx, subscription_id: str) -> Webhook | None:
    session = await tx.session()
    found: Webhook | None = await session.scalar(
        select(Webhook).where(Webhook.subscription_id == subscription_id)
    )
    return found


async def _hold(tx: Tx, subscription_id: str, *, given_up: bool = False) -> EventSubscription:
    """Locked, with its own address and what that is still to get, in the order of whoever delivers
    and hands out: work, address, subscription.
    """
    session = await tx.session()
    own = select(Webhook.tenant_id, Webhook.id).where(Webhook.subscription_id == subscription_id)
    found = (await session.execute(own)).one_or_none()
    if found is not None:
        if given_up:
            await ledger.cancel_lane(tx, found.tenant_id, found.id)
        await session.get(Webhook, found.id, with_for_update=True)
    return await find(tx, subscription_id, for_update=True)


async def create(desk: Desk, data: CreateSubscription) -> ChangedSubscription:
    tenant_id = desk.principal.home
    theirs = EventSubscription.tenant_id == tenant_id
    await quota.check(desk.tx, EventSubscription, MOST, "subscriptions", theirs)
    check_type(data.event_type)
    config = await _checked(desk, tenant_id, data.action_type, data.action_config)
    subscription = EventSubscription(
        id=new_id("sub"),
        tenant_id=tenant_id,
        event_type=data.event_type,
        action_type=data.action_type,
        action_config=_shown(config),
        filters=filters.checked(data.filters) if data.filters else None,
        active=data.active,
        created_by=desk.principal.user_id,
    )
    session = await desk.tx.session()
    session.add(subscription)
    await session.flush()
    secret, _ = await _keep_endpoint(desk, subscription, config)
    created = SubscriptionCreated(subscription.id, data.event_type, data.action_type)
    await events.emit(desk.tx, created, tenant_id=tenant_id)
    return filled(ChangedSubscription, subscription, secret=secret)


async def update(desk: Desk, subscription_id: str, data: UpdateSubscription) -> ChangedSubscription:
    values = bodies.given(data)
    subscription = await _hold(desk.tx, subscription_id, given_up=_gives_up_address(values))
    if "event_type" in values:
        check_type(values["event_type"])
    if values.get("filters") is not None:
        values["filters"] = filters.checked(values["filters"]) or None
    config = await _new_config(desk, subscription, values)
    if config is not None:
        values["action_config"] = _shown(config)
    changed = [name for name, value in values.items() if getattr(subscription, name) != value]
    for name in changed:
        setattr(subscription, name, values[name])
    await (await desk.tx.session()).flush()
    secret = None
    if config is not None:
        secret, others = await _keep_endpoint(desk, subscription, config)
        if others and "action_config" not in changed:
            # Behind the same masks.
            changed.append("action_config")
    if "active" in changed:
        await _switch_endpoint(desk.tx, subscription)
    if changed:
        updated = SubscriptionUpdated(
            subscription.id, subscription.event_type, subscription.action_type, changed
        )
        await events.emit(desk.tx, updated, tenant_id=subscription.tenant_id)
    return filled(ChangedSubscription, subscription, secret=secret)


async def rotate(desk: Desk, subscription_id: str) -> ChangedSubscription:
    """Of its own address; as with a webhook, the old secret signs beside the new one for a day."""
    subscription = await _hold(desk.tx, subscription_id)
    secret = await webhooks.renew_secret(desk, await endpoint_of(desk.tx, subscription_id))
    ids = (subscription.id, subscription.event_type, subscription.action_type)
    await events.emit(
        desk.tx, SubscriptionUpdated(*ids, ["secret"]), tenant_id=subscription.tenant_id
    )
    return filled(ChangedSubscription, subscription, secret=secret)


def _gives_up_address(values: dict[str, Any]) -> bool:
    """An action of another kind, or a webhook that there is."""
    return "action_config" in values and values["action_config"].get("url") is None


async def delete(tx: Tx, subscription_id: str) -> None:
    """What its own address has still to get is not delivered."""
    subscription = await _hold(tx, subscription_id, given_up=True)
    session = await tx.session()
    await session.delete(subscription)
    await session.flush()
    gone = SubscriptionDeleted(subscription.id, subscription.event_type, subscription.action_type)
    await events.emit(tx, gone, tenant_id=subscription.tenant_id)


async def switch(tx: Tx, workflow_id: str, *, active: bool) -> Switched:
    """All subscriptions that run this workflow."""
    rows = await queries.of_workflow(tx, tenant_of(tx), workflow_id)
    if not rows:
        raise WorkflowNotFound(f"No subscription runs a workflow {workflow_id[:64]}")
    updated = 0
    for tenant_id in {row["tenant_id"] for row in rows}:
        ids = [row["id"] for row in rows if row["tenant_id"] == tenant_id]
        updated += await queries.switch(tx, tenant_id, ids, active=active)
    for row in rows:
        if row["active"] != active:
            told = SubscriptionUpdated(row["id"], row["event_type"], "workflow", ["active"])
            await events.emit(tx, told, tenant_id=row["tenant_id"])
    return Switched(workflow_id, updated)


async def test(tx: Tx, tenant_id: str, data: TestEvent) -> TestEmitted:
    """Recorded as a test, and handed out like any other event of its type."""
    check_type(data.event_type)
    given = data.data
    if given is None:
        given = catalogue.example_of(catalogue.CATALOGUE[data.event_type])
    elif is_deeper(given, _DEEPEST):
        raise Invalid.field("data", "is nested too deeply")
    elif len(msgspec.json.encode(given)) > _TEST_BYTES:
        raise Invalid.field("data", f"must be at most {_TEST_BYTES // 1024} KiB")
    matched = await fan_out.matching(tx, tenant_id, data.event_type, given)
    told: Told = await events.emit_test(tx, data.event_type, given, tenant_id=tenant_id)
    return TestEmitted(told.id, told.correlation_id, len(matched))


def check_type(event_type: str) -> None:
    if event_type not in catalogue.CATALOGUE:
        raise Invalid.field("event_type", "is no event type; GET /api/v1/event-types lists them")


async def _new_config(
    desk: Desk, subscription: EventSubscription, values: dict[str, Any]
) -> Any | None:
    """What was given, or what an action of another type would need."""
    action_type = values.get("action_type", subscription.action_type)
    if "action_config" not in values:
        if action_type != subscription.action_type:
            raise Invalid.field("action_config", f"is needed for an action of type {action_type}")
        return None
    return await _checked(desk, subscription.tenant_id, action_type, values["action_config"])


async def _checked(desk: Desk, tenant_id: str, action_type: str, given: dict[str, Any]) -> Any:
    config = await actions.checked(desk.tx, tenant_id, action_type, given)
    if isinstance(config, WebhookConfig):
        if config.url is not None:
            webhooks.check_url(desk.guard, config.url, "action_config.url")
        elif config.webhook_id is not None:
            await _check_webhook(desk.tx, tenant_id, config.webhook_id)
    return config


async def _check_webhook(tx: Tx, tenant_id: str, webhook_id: str) -> None:
    try:
        found = await webhooks.find(tx, webhook_id)
    except WebhookNotFound:
        found = None
    if found is None or found.tenant_id != tenant_id:
        raise Invalid.field("action_config.webhook_id", "there is no such webhook")


def _shown(config: Any) -> dict[str, Any]:
    """What is stored beside the sealed endpoint: headers without what they open."""
    values = actions.stored(config)
    if values.get("headers"):
        values["headers"] = headers.shown(values["headers"])
    return values


async def _keep_endpoint(
    desk: Desk, subscription: EventSubscription, config: Any
) -> tuple[str | None, bool]:
    """Where the action names an address: its endpoint. Gives a secret that is new, and whether
    other headers are sent from now on.
    """
    url = config.url if isinstance(config, WebhookConfig) else None
    endpoint = await _own_endpoint(desk.tx, subscription.id)
    session = await desk.tx.session()
    if url is None:
        if endpoint is not None:
            await session.delete(endpoint)
            await session.flush()
        return None, False
    given = config.headers or {}
    if endpoint is not None:
        webhooks.check_move(desk, endpoint, url, given, "action_config.headers")
        others = webhooks.change_headers(desk, endpoint, given, "action_config.headers")
        endpoint.url = url
        await session.flush()
        return None, others
    wanted = headers.unmasked(given, {}, "action_config.headers")
    secret = signing.new_secret()
    sealed = Keys(secret, headers=headers.checked(wanted, "action_config.headers"))
    made = webhooks.new_endpoint(desk, subscription.tenant_id, url, sealed)
    made.subscription_id, made.active = subscription.id, subscription.active
    session.add(made)
    await session.flush()
    return secret, True


async def _switch_endpoint(tx: Tx, subscription: EventSubscription) -> None:
    endpoint = await _own_endpoint(tx, subscription.id)
    if endpoint is not None:
        endpoint.active = subscription.active
        webhooks.revive(endpoint)
        await (await tx.session()).flush()
