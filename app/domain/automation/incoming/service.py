"""Incoming webhooks: their public addresses and signature verification."""

from typing import Any

import msgspec

from app.context import RequestContext
from app.crypto.keyring import Keyring, SealContext
from app.domain.automation.workflows import api as workflows
from app.domain.platform.events import api as events
from app.kit import paging, slugs, validation
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.views import build_view
from app.net.secret_fields import MASK
from db.fast import Row
from db.models import IncomingWebhook
from db.session import Tx

from . import queries, verification
from .errors import IncomingWebhookNotFound
from .events import IncomingWebhookCreated, IncomingWebhookDeleted, IncomingWebhookUpdated
from .schemas import CreateIncoming, IncomingView, UpdateIncoming, Verification

# The address is public, and must be hard to guess.
_SLUG_SUFFIX_CHARS = 16


async def list_page(
    context: RequestContext, page: Page, *, active: bool | None, sort: str | None
) -> Paged[IncomingView]:
    rows, total = await queries.list_webhooks(context.tx, page, active=active, sort=sort)
    return paging.paged([_build_view_of_row(context, row) for row in rows], total, page)


async def find(tx: Tx, webhook_id: str, *, for_update: bool = False) -> IncomingWebhook:
    session = await tx.session()
    webhook = await session.get(IncomingWebhook, webhook_id, with_for_update=for_update)
    if webhook is None:
        raise _not_found(webhook_id)
    return webhook


async def require(tx: Tx, webhook_id: str) -> None:
    """Raises IncomingWebhookNotFound unless the webhook exists."""
    if not await queries.exists(tx, webhook_id):
        raise _not_found(webhook_id)


def _not_found(webhook_id: str) -> IncomingWebhookNotFound:
    return IncomingWebhookNotFound(f"There is no incoming webhook {webhook_id[:64]}")


async def get(context: RequestContext, webhook_id: str) -> IncomingView:
    row = await queries.find_view(context.tx, webhook_id)
    if row is None:
        raise _not_found(webhook_id)
    return _build_view_of_row(context, row)


async def create(context: RequestContext, data: CreateIncoming) -> IncomingView:
    tenant_id = context.principal.home
    await queries.check_quota(context.tx, tenant_id)
    await _check_workflow(context, tenant_id, data.workflow_id)
    webhook = IncomingWebhook(
        id=new_id("inh"),
        tenant_id=tenant_id,
        name=data.name,
        slug=data.slug or slugs.generate(data.name, _SLUG_SUFFIX_CHARS),
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
    return _build_view(context, webhook)


async def update(context: RequestContext, webhook_id: str, data: UpdateIncoming) -> IncomingView:
    webhook = await find(context.tx, webhook_id, for_update=True)
    values = validation.set_fields(data)
    if values.get("slug", webhook.slug) != webhook.slug:
        await _check_slug(context.tx, values["slug"])
    if values.get("workflow_id") not in {None, webhook.workflow_id}:
        await _check_workflow(context, webhook.tenant_id, values["workflow_id"])
    new_verification = values.pop("verification", msgspec.UNSET)
    also_changed = []
    if new_verification is not msgspec.UNSET and _set_verification(
        context, webhook, new_verification
    ):
        also_changed.append("verification")
    await events.save_changes(
        context.tx,
        webhook,
        values,
        lambda names: IncomingWebhookUpdated(webhook.id, webhook.name, names),
        also_changed=also_changed,
    )
    return _build_view(context, webhook)


async def delete(tx: Tx, webhook_id: str) -> None:
    """Deletes its payloads and their events as well."""
    # The lock comes first: a payload received meanwhile is deleted here or gets 404.
    webhook = await find(tx, webhook_id, for_update=True)
    await events.delete_selected(tx, webhook.tenant_id, queries.PAYLOAD_IDS, webhook.id)
    session = await tx.session()
    await session.delete(webhook)
    await session.flush()
    deleted = IncomingWebhookDeleted(webhook.id, webhook.name)
    await events.emit(tx, deleted, tenant_id=webhook.tenant_id)


async def _check_workflow(context: RequestContext, tenant_id: str, workflow_id: str | None) -> None:
    """Anyone who sets a trigger can start the workflow at any time."""
    if workflow_id is None:
        return
    context.principal.require("workflows:execute")
    if not await workflows.exists(context.tx, tenant_id, workflow_id):
        raise Invalid.field("workflow_id", "this workflow does not exist")


async def _check_slug(tx: Tx, slug: str) -> None:
    if await queries.slug_exists(tx, slug):
        raise Conflict(f"The slug {slug} is in use; choose another, or leave it out")


def _seal_context(tenant_id: str, webhook_id: str) -> SealContext:
    return SealContext.of(IncomingWebhook.secret, tenant_id, webhook_id)


def decrypt_secret(keyring: Keyring, tenant_id: str, webhook_id: str, sealed_secret: bytes) -> str:
    return keyring.open(sealed_secret, _seal_context(tenant_id, webhook_id)).decode()


def _set_verification(
    context: RequestContext, webhook: IncomingWebhook, new_verification: Verification | None
) -> bool:
    """True when the verification has changed."""
    previous = (webhook.scheme, webhook.header, webhook.secret)
    if new_verification is None:
        webhook.scheme = webhook.header = webhook.secret = None
        return previous != (None, None, None)
    if new_verification.header is not None:
        problem = verification.find_header_problem(new_verification.scheme)
        if problem is not None:
            raise Invalid.field("verification.header", problem)
    if new_verification.secret == MASK:
        if webhook.secret is None or webhook.scheme != new_verification.scheme:
            raise Invalid.field(
                "verification.secret", "is required: none is stored for this scheme"
            )
    else:
        problem = verification.find_secret_problem(new_verification.scheme, new_verification.secret)
        if problem is not None:
            raise Invalid.field("verification.secret", problem)
        seal_context = _seal_context(webhook.tenant_id, webhook.id)
        webhook.secret = context.keyring.seal(new_verification.secret.encode(), seal_context)
    webhook.scheme, webhook.header = new_verification.scheme, new_verification.header
    return previous != (webhook.scheme, webhook.header, webhook.secret)


def _build_view_of_row(context: RequestContext, row: Row) -> IncomingView:
    return queries.build_view(
        row,
        url=_build_url(context, row["slug"]),
        verification=_mask_verification(row["scheme"], row["header"]),
    )


def _build_view(context: RequestContext, webhook: IncomingWebhook) -> IncomingView:
    return build_view(
        IncomingView,
        webhook,
        url=_build_url(context, webhook.slug),
        verification=_mask_verification(webhook.scheme, webhook.header),
    )


def _build_url(context: RequestContext, slug: str) -> str:
    return f"{context.settings.public_url}/webhooks/in/{slug}"


def _mask_verification(scheme: Any, header: str | None) -> Verification | None:
    if scheme is None:
        return None
    return Verification(scheme=scheme, secret=MASK, header=header)
