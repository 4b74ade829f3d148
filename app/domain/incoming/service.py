"""Incoming webhooks: public addresses, and how their senders sign."""

import re
import secrets
from typing import Any

import msgspec
from sqlalchemy import select

from app.domain.events import service as events
from app.domain.incoming import queries, verification
from app.domain.incoming.errors import IncomingWebhookNotFound
from app.domain.incoming.events import (
    IncomingWebhookCreated,
    IncomingWebhookDeleted,
    IncomingWebhookUpdated,
)
from app.domain.incoming.schemas import (
    CreateIncoming,
    IncomingView,
    UpdateIncoming,
    Verification,
)
from app.domain.webhooks.headers import MASK
from app.http import bodies, paging, quota
from app.http.errors import Conflict, Invalid
from app.http.paging import Page, Paged
from app.kit.crypto import Keyring, Place
from app.kit.ids import new_id
from app.security.principal import Principal
from app.settings import Settings
from db.models import IncomingWebhook
from db.session import Tx

MOST = 500
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 40
_GUESSES = "23456789abcdefghjkmnpqrstvwxyz"
_UNGUESSED = 16
_SORTABLE = {
    "name": IncomingWebhook.name,
    "slug": IncomingWebhook.slug,
    "created_at": IncomingWebhook.created_at,
    "updated_at": IncomingWebhook.updated_at,
}


class Porch(msgspec.Struct, frozen=True):
    """Somebody who sets up addresses, and what is needed for it."""

    tx: Tx
    settings: Settings
    keyring: Keyring
    principal: Principal


async def page_of(
    at: Porch, page: Page, *, active: bool | None, sort: str | None
) -> Paged[IncomingView]:
    wanted = select(IncomingWebhook)
    if active is not None:
        wanted = wanted.where(IncomingWebhook.active == active)
    ordering = paging.order(sort, _SORTABLE, "-created_at", IncomingWebhook.id)
    rows, total = await paging.fetch(at.tx, wanted, page, ordering)
    return paging.paged([_view(at, row) for row in rows], total, page)


async def find(tx: Tx, webhook_id: str, *, for_update: bool = False) -> IncomingWebhook:
    session = await tx.session()
    found = await session.get(IncomingWebhook, webhook_id, with_for_update=for_update)
    if found is None:
        raise IncomingWebhookNotFound(f"There is no incoming webhook {webhook_id[:64]}")
    return found


async def get(at: Porch, webhook_id: str) -> IncomingView:
    return _view(at, await find(at.tx, webhook_id))


async def create(at: Porch, data: CreateIncoming) -> IncomingView:
    tenant_id = at.principal.home
    theirs = IncomingWebhook.tenant_id == tenant_id
    await quota.check(at.tx, IncomingWebhook, MOST, "incoming webhooks", theirs)
    webhook = IncomingWebhook(
        id=new_id("inh"),
        tenant_id=tenant_id,
        name=data.name,
        slug=data.slug or _slug_of(data.name),
        workflow_id=data.workflow_id,
        active=data.active,
    )
    _set_verification(at, webhook, data.verification)
    await _check_slug(at.tx, webhook.slug)
    session = await at.tx.session()
    session.add(webhook)
    await session.flush()
    created = IncomingWebhookCreated(webhook.id, webhook.name)
    await events.emit(at.tx, created, tenant_id=tenant_id)
    return _view(at, webhook)


async def update(at: Porch, webhook_id: str, data: UpdateIncoming) -> IncomingView:
    webhook = await find(at.tx, webhook_id, for_update=True)
    values = bodies.given(data)
    if values.get("slug", webhook.slug) != webhook.slug:
        await _check_slug(at.tx, values["slug"])
    changed = [
        name
        for name, value in values.items()
        if name != "verification" and getattr(webhook, name) != value
    ]
    for name in changed:
        setattr(webhook, name, values[name])
    wanted = values.get("verification", msgspec.UNSET)
    if wanted is not msgspec.UNSET and _set_verification(at, webhook, wanted):
        changed.append("verification")
    if changed:
        await (await at.tx.session()).flush()
        updated = IncomingWebhookUpdated(webhook.id, webhook.name, changed)
        await events.emit(at.tx, updated, tenant_id=webhook.tenant_id)
    return _view(at, webhook)


async def delete(tx: Tx, webhook_id: str) -> None:
    """Takes its log along, and the events with its payloads inside."""
    # Locked first: what comes in meanwhile is seen here, or finds nothing to come to.
    webhook = await find(tx, webhook_id, for_update=True)
    await queries.forget_events(tx, webhook.tenant_id, webhook.id)
    session = await tx.session()
    await session.delete(webhook)
    await session.flush()
    gone = IncomingWebhookDeleted(webhook.id, webhook.name)
    await events.emit(tx, gone, tenant_id=webhook.tenant_id)


def _slug_of(name: str) -> str:
    """The address is public: its end is what keeps others from finding it."""
    words = _NOT_SLUG.sub("-", name.lower()).strip("-")[:_SLUG_CHARS].strip("-")
    tail = "".join(secrets.choice(_GUESSES) for _ in range(_UNGUESSED))
    return f"{words}-{tail}" if words else tail


async def _check_slug(tx: Tx, slug: str) -> None:
    if await queries.is_taken(tx, slug):
        raise Conflict(f"The slug {slug} is taken; choose another, or none")


def _place(tenant_id: str, webhook_id: str) -> Place:
    return Place(tenant=tenant_id, table="incoming_webhooks", record=webhook_id, field="secret")


def opened(keyring: Keyring, tenant_id: str, webhook_id: str, sealed: bytes) -> str:
    return keyring.open(sealed, _place(tenant_id, webhook_id)).decode()


def _set_verification(at: Porch, webhook: IncomingWebhook, given: Verification | None) -> bool:
    """True if it is another now."""
    before = (webhook.scheme, webhook.header, webhook.secret)
    if given is None:
        webhook.scheme = webhook.header = webhook.secret = None
        return before != (None, None, None)
    if given.header is not None and given.scheme != "hmac_sha256":
        raise Invalid.field("verification.header", "is only for the scheme hmac_sha256")
    if given.secret == MASK:
        if webhook.secret is None or webhook.scheme != given.scheme:
            raise Invalid.field("verification.secret", "is needed: none is stored for this scheme")
    else:
        problem = verification.problem_with_secret(given.scheme, given.secret)
        if problem is not None:
            raise Invalid.field("verification.secret", problem)
        place = _place(webhook.tenant_id, webhook.id)
        webhook.secret = at.keyring.seal(given.secret.encode(), place)
    webhook.scheme, webhook.header = given.scheme, given.header
    return before != (webhook.scheme, webhook.header, webhook.secret)


def _view(at: Porch, webhook: IncomingWebhook) -> IncomingView:
    shown: Any = None
    if webhook.scheme is not None:
        scheme: Any = webhook.scheme
        shown = Verification(scheme=scheme, secret=MASK, header=webhook.header)
    return IncomingView(
        webhook.id,
        webhook.name,
        webhook.slug,
        f"{at.settings.public_url}/webhooks/in/{webhook.slug}",
        webhook.workflow_id,
        webhook.active,
        shown,
        webhook.created_at,
        webhook.updated_at,
    )
