"""Outgoing webhooks: endpoints, their secrets, and who gets an event."""

from datetime import timedelta
from typing import Any

import msgspec
from sqlalchemy import select
from yarl import URL

from app.domain.events import catalogue
from app.domain.events import service as events
from app.domain.webhooks import headers, keys, signing
from app.domain.webhooks.errors import WebhookNotFound
from app.domain.webhooks.events import WebhookCreated, WebhookDeleted, WebhookUpdated
from app.domain.webhooks.keys import Keys
from app.domain.webhooks.schemas import (
    CreateWebhook,
    UpdateWebhook,
    WebhookView,
    WebhookWithSecret,
)
from app.http import bodies, paging, quota
from app.http.answers import filled
from app.http.errors import Conflict, Invalid
from app.http.paging import Page, Paged
from app.kit import clock
from app.kit.crypto import CannotOpen, Keyring
from app.kit.egress import Guard
from app.kit.ids import new_id
from app.security.principal import Principal
from db import ledger
from db.models import Webhook
from db.session import Tx

MOST = 500
OVERLAP = timedelta(hours=24)
_SORTABLE = {
    "url": Webhook.url,
    "created_at": Webhook.created_at,
    "updated_at": Webhook.updated_at,
}


class Desk(msgspec.Struct, frozen=True):
    """Somebody who sets up endpoints, and what is needed to judge what they bring."""

    tx: Tx
    keyring: Keyring
    guard: Guard
    principal: Principal


async def page_of(
    desk: Desk, page: Page, *, active: bool | None, sort: str | None
) -> Paged[WebhookView]:
    wanted = select(Webhook).where(Webhook.subscription_id.is_(None))
    if active is not None:
        wanted = wanted.where(Webhook.active == active)
    ordering = paging.order(sort, _SORTABLE, "-created_at", Webhook.id)
    rows, total = await paging.fetch(desk.tx, wanted, page, ordering)
    return paging.paged([_view(desk, row) for row in rows], total, page)


async def find(tx: Tx, webhook_id: str, *, for_update: bool = False) -> Webhook:
    found = await (await tx.session()).get(Webhook, webhook_id, with_for_update=for_update)
    if found is None or found.subscription_id is not None:
        raise WebhookNotFound(f"There is no webhook {webhook_id[:64]}")
    return found


async def get(desk: Desk, webhook_id: str) -> WebhookView:
    return _view(desk, await find(desk.tx, webhook_id))


async def create(desk: Desk, data: CreateWebhook) -> WebhookWithSecret:
    tenant_id = desk.principal.home
    theirs = (Webhook.tenant_id == tenant_id, Webhook.subscription_id.is_(None))
    await quota.check(desk.tx, Webhook, MOST, "webhooks", *theirs)
    check_url(desk.guard, data.url, "url")
    _check_events(data.events)
    wanted = headers.checked(headers.unmasked(data.headers or {}, {}, "headers"))
    secret = signing.new_secret()
    webhook = new_endpoint(desk, tenant_id, data.url, Keys(secret, headers=wanted))
    webhook.events = list(dict.fromkeys(data.events))
    webhook.active = data.active
    webhook.description = data.description or ""
    session = await desk.tx.session()
    session.add(webhook)
    await session.flush()
    created = WebhookCreated(webhook.id, origin_of(webhook.url), webhook.events)
    await events.emit(desk.tx, created, tenant_id=tenant_id)
    return _with_secret(desk, webhook, secret)


def new_endpoint(desk: Desk, tenant_id: str, url: str, sealed: Keys) -> Webhook:
    webhook_id = new_id("whk")
    return Webhook(
        id=webhook_id,
        tenant_id=tenant_id,
        url=url,
        events=[],
        keys=keys.seal(desk.keyring, tenant_id, webhook_id, sealed),
        created_by=desk.principal.user_id,
    )


async def update(desk: Desk, webhook_id: str, data: UpdateWebhook) -> WebhookView:
    webhook = await find(desk.tx, webhook_id, for_update=True)
    values = bodies.given(data)
    if "url" in values:
        check_url(desk.guard, values["url"], "url")
        given = values["headers"] or {} if "headers" in values else None
        check_move(desk, webhook, values["url"], given, "headers")
    if "events" in values:
        _check_events(values["events"])
        values["events"] = list(dict.fromkeys(values["events"]))
    if "description" in values:
        values["description"] = values["description"] or ""
    changed = [
        name
        for name, value in values.items()
        if name != "headers" and getattr(webhook, name) != value
    ]
    for name in changed:
        setattr(webhook, name, values[name])
    if "headers" in values and change_headers(desk, webhook, values["headers"] or {}, "headers"):
        changed.append("headers")
    if "active" in changed:
        revive(webhook)
    if changed:
        await (await desk.tx.session()).flush()
        await _tell(desk, webhook, changed)
    return _view(desk, webhook)


def revive(webhook: Webhook) -> None:
    """Switched on or off by hand: what it was switched off for, or how long it failed, is over."""
    webhook.failing_since = webhook.disabled_reason = None


def check_move(
    desk: Desk, webhook: Webhook, url: str, given: dict[str, str] | None, field: str
) -> None:
    if _where(url) != _where(webhook.url):
        headers.check_move(_opened_to_change(desk.keyring, webhook).headers, given, field)


def _where(url: str) -> tuple[str, str | None, int | None]:
    """Whom it leads to; a port that goes without saying may be said."""
    read = URL(url)
    return read.scheme, read.host, read.port


def change_headers(desk: Desk, webhook: Webhook, given: dict[str, str], field: str) -> bool:
    """Sealed anew with the same secrets; True if they are others now."""
    stored = _opened_to_change(desk.keyring, webhook)
    wanted = headers.checked(headers.unmasked(given, stored.headers, field), field)
    if wanted == stored.headers:
        return False
    changed = msgspec.structs.replace(stored, headers=wanted)
    webhook.keys = keys.seal(desk.keyring, webhook.tenant_id, webhook.id, changed)
    return True


async def rotate(desk: Desk, webhook_id: str) -> WebhookWithSecret:
    """The old secret signs beside the new one for a day, so that nobody has to be quick."""
    webhook = await find(desk.tx, webhook_id, for_update=True)
    secret = await renew_secret(desk, webhook)
    await _tell(desk, webhook, ["secret"])
    return _with_secret(desk, webhook, secret)


async def renew_secret(desk: Desk, webhook: Webhook) -> str:
    stored, secret = opened(desk.keyring, webhook), signing.new_secret()
    renewed = Keys(secret, stored.secret, stored.headers) if stored else Keys(secret)
    webhook.keys = keys.seal(desk.keyring, webhook.tenant_id, webhook.id, renewed)
    webhook.previous_until = clock.now() + OVERLAP
    await (await desk.tx.session()).flush()
    return secret


async def delete(tx: Tx, webhook_id: str) -> None:
    """What is still to be delivered is not, and its record goes along."""
    webhook = await find(tx, webhook_id)
    await ledger.cancel_lane(tx, webhook.tenant_id, webhook.id)
    # After its work, as whoever delivers does; somebody else may have deleted it meanwhile.
    webhook = await find(tx, webhook_id, for_update=True)
    session = await tx.session()
    await session.delete(webhook)
    await session.flush()
    gone = WebhookDeleted(webhook.id, origin_of(webhook.url))
    await events.emit(tx, gone, tenant_id=webhook.tenant_id)


async def _tell(desk: Desk, webhook: Webhook, changed: list[str]) -> None:
    updated = WebhookUpdated(webhook.id, origin_of(webhook.url), changed)
    await events.emit(desk.tx, updated, tenant_id=webhook.tenant_id)


def opened(keyring: Keyring, webhook: Webhook) -> Keys | None:
    """None where the root key that sealed it is lost: a new secret mends it, and nothing else."""
    try:
        return keys.read(keyring, webhook.tenant_id, webhook.id, webhook.keys)
    except CannotOpen:
        return None


def _opened_to_change(keyring: Keyring, webhook: Webhook) -> Keys:
    found = opened(keyring, webhook)
    if found is None:
        raise Conflict("Its secret cannot be opened with this instance's keys; rotate it first")
    return found


def check_url(guard: Guard, url: str, field: str) -> None:
    problem = guard.problem_with(url)
    if problem is None and (" " in url or not url.isprintable()):
        # They would be dropped on the way: it would lead elsewhere than it reads.
        problem = "must not contain spaces or control characters"
    if problem is not None:
        raise Invalid.field(field, problem)


def _check_events(names: list[str]) -> None:
    wrong = {
        f"events.{index}": "is no event type; GET /api/v1/event-types lists them"
        for index, name in enumerate(names)
        if name not in catalogue.CATALOGUE
    }
    if wrong:
        raise Invalid.fields(wrong)


def origin_of(url: str) -> str:
    """Paths and queries are often what opens an endpoint, and events go to others."""
    return str(URL(url).origin())


def _view(desk: Desk, webhook: Webhook) -> WebhookView:
    return filled(WebhookView, webhook, **_more(desk, webhook))


def _with_secret(desk: Desk, webhook: Webhook, secret: str) -> WebhookWithSecret:
    return filled(WebhookWithSecret, webhook, secret=secret, **_more(desk, webhook))


def _more(desk: Desk, webhook: Webhook) -> dict[str, Any]:
    until, stored = webhook.previous_until, opened(desk.keyring, webhook)
    return {
        "headers": headers.shown(stored.headers) if stored else {},
        "previous_secret_expires_at": until if until and until > clock.now() else None,
    }
