"""Incoming webhooks: public addresses, and how their senders sign."""

import re
import secrets
from typing import Any

import msgspec

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
from app.http.context import RequestContext
from app.kit import paging, validation
from app.kit.crypto import Keyring, SealContext
from app.kit.errors import Conflict, Invalid
from app.kit.headers import MASK
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from db.models import IncomingWebhook
from db.session import Tx

_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 40
_TAIL_ALPHABET = "23456789abcdefghjkmnpqrstvwxyz"
_TAIL_CHARS = 16


async def list_page(
    context: RequestContext, page: Page, *, active: bool | None, sort: str | None
) -> Paged[IncomingView]:
    rows, total = await queries.list_webhooks(context.tx, page, active=active, sort=sort)
    return paging.paged([_view(context, row) for row in rows], total, page)


async def find(tx: Tx, webhook_id: str, *, for_update: bool = False) -> IncomingWebhook:
    session = await tx.session()
    webhook = await session.get(IncomingWebhook, webhook_id, with_for_update=for_update)
    if webhook is None:
        raise IncomingWebhookNotFound(f"There is no incoming webhook {webhook_id[:64]}")
    return webhook


async def get(context: RequestContext, webhook_id: str) -> IncomingView:
    return _view(context, await find(context.tx, webhook_id))


async def create(context: RequestContext, data: CreateIncoming) -> IncomingView:
    tenant_id = context.principal.home
    await queries.check_quota(context.tx, tenant_id)
    webhook = IncomingWebhook(
        id=new_id("inh"),
        tenant_id=tenant_id,
        name=data.name,
        slug=data.slug or _slug_of(data.name),
        workflow_id=data.workflow_id,
        active=data.active,
    )
    _set_verification(context, webhook, data.verification)
    await _check_slug(context.tx, webhook.slug)
    session = await context.tx.session()
    session.add(webhook)
    await session.flush()
    created = IncomingWebhookCreated(webhook.id, webhook.name)
    await events.emit(context.tx, created, tenant_id=tenant_id)
    return _view(context, webhook)


async def update(context: RequestContext, webhook_id: str, data: UpdateIncoming) -> IncomingView:
    webhook = await find(context.tx, webhook_id, for_update=True)
    values = validation.set_fields(data)
    if values.get("slug", webhook.slug) != webhook.slug:
        await _check_slug(context.tx, values["slug"])
    wanted = values.pop("verification", msgspec.UNSET)
    also_changed = []
    if wanted is not msgspec.UNSET and _set_verification(context, webhook, wanted):
        also_changed.append("verification")
    await events.save_changes(
        context.tx,
        webhook,
        values,
        lambda names: IncomingWebhookUpdated(webhook.id, webhook.name, names),
        also_changed=also_changed,
    )
    return _view(context, webhook)


async def delete(tx: Tx, webhook_id: str) -> None:
    """Takes its log along, and the events with its payloads inside."""
    # Locked first: what comes in meanwhile is seen here, or finds nothing to come to.
    webhook = await find(tx, webhook_id, for_update=True)
    await events.delete_selected(tx, webhook.tenant_id, queries.PAYLOAD_IDS, webhook.id)
    session = await tx.session()
    await session.delete(webhook)
    await session.flush()
    gone = IncomingWebhookDeleted(webhook.id, webhook.name)
    await events.emit(tx, gone, tenant_id=webhook.tenant_id)


def _slug_of(name: str) -> str:
    """The address is public: its end is what keeps others from finding it."""
    words = _NOT_SLUG.sub("-", name.lower()).strip("-")[:_SLUG_CHARS].strip("-")
    tail = "".join(secrets.choice(_TAIL_ALPHABET) for _ in range(_TAIL_CHARS))
    return f"{words}-{tail}" if words else tail


async def _check_slug(tx: Tx, slug: str) -> None:
    if await queries.is_taken(tx, slug):
        raise Conflict(f"The slug {slug} is taken; choose another, or none")


def _place(tenant_id: str, webhook_id: str) -> SealContext:
    return SealContext.of(IncomingWebhook.secret, tenant_id, webhook_id)


def open_secret(keyring: Keyring, tenant_id: str, webhook_id: str, sealed: bytes) -> str:
    return keyring.open(sealed, _place(tenant_id, webhook_id)).decode()


def _set_verification(
    context: RequestContext, webhook: IncomingWebhook, given: Verification | None
) -> bool:
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
        webhook.secret = context.keyring.seal(given.secret.encode(), place)
    webhook.scheme, webhook.header = given.scheme, given.header
    return before != (webhook.scheme, webhook.header, webhook.secret)


def _view(context: RequestContext, webhook: IncomingWebhook) -> IncomingView:
    shown: Any = None
    if webhook.scheme is not None:
        scheme: Any = webhook.scheme
        shown = Verification(scheme=scheme, secret=MASK, header=webhook.header)
    return IncomingView(
        webhook.id,
        webhook.name,
        webhook.slug,
        f"{context.settings.public_url}/webhooks/in/{webhook.slug}",
        webhook.workflow_id,
        webhook.active,
        shown,
        webhook.created_at,
        webhook.updated_at,
    )
