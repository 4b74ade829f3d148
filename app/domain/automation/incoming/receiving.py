"""Receives payloads: verifies the raw bytes, stores them and emits an event before it responds."""

from typing import Any

import asyncpg
import msgspec

from app.crypto.keyring import CannotOpen
from app.domain.identity.tenants import api as tenants
from app.domain.identity.tenants.api import Visit
from app.domain.platform.events import api as events
from app.domain.platform.storage import api as storage
from app.http.authorization import caller_of
from app.http.costs import COSTS
from app.http.dependencies import HttpRequest, services_of
from app.kit import logs
from app.kit.ids import new_id
from app.kit.texts import as_json, storable
from app.net import headers
from app.security.plans import plan_of
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import queries, verification, workflow_trigger
from .errors import BadSignature, IncomingWebhookNotFound, PayloadNotFound
from .events import IncomingWebhookReceived
from .payloads import decode_body
from .queries import LISTED_BYTES
from .service import decrypt_secret, find
from .verification import RawRequest

log = logs.get("incoming")

MAX_BYTES = 1024 * 1024
_MAX_HEADER_CHARS = 4096
_MAX_HEADERS = 100
_NO_WEBHOOK = "There is no active incoming webhook at this address"


class Payload(msgspec.Struct, frozen=True):
    body: bytes
    headers: dict[str, str]
    source_ip: str
    replay_of: str | None = None


async def receive(request: HttpRequest, slug: str) -> tuple[str, Any]:
    """Returns the id of the stored payload and its content.

    The id is empty for a Slack handshake, which is not stored.
    """
    services, body = services_of(request), await request.body()
    async with services.db.tx(None, autocommit=True) as tx:
        webhook = await queries.find_by_slug(tx, slug)
    if webhook is None:
        raise IncomingWebhookNotFound(_NO_WEBHOOK)
    tenant_id = webhook["tenant_id"]
    request_headers = {name.lower(): value for name, value in request.headers.items()}
    _verify_signature(services, webhook, RawRequest(request_headers, body))
    # Without shares: a webhook has one sender, who knows its address or secret.
    visit = Visit(
        kind="incoming",
        tenant_id=tenant_id,
        plan=plan_of(webhook["plan"], msgspec.json.decode(webhook["limits"])),
        units=COSTS["write"],
        refusal="Too many payloads are sent here",
    )
    await tenants.charge_visitors(request, visit)
    content = decode_body(body, request_headers.get("content-type", ""))
    has_handshake = verification.has_handshake(webhook["scheme"])
    if has_handshake and isinstance(content, dict) and _is_handshake(content):
        return "", content
    with storage.hide_figures():
        await storage.require_space(services, tenant_id)
    payload = Payload(body, _select_headers(request_headers), caller_of(request).source)
    try:
        async with services.db.tx(tenant_id) as tx:
            await _follow_cause(tx, tenant_id, request_headers.get("x-service-event-id"))
            return await store(tx, services, webhook, payload, content), content
    except asyncpg.ForeignKeyViolationError:
        # The webhook was deleted after it was looked up.
        raise IncomingWebhookNotFound(_NO_WEBHOOK) from None


async def replay(tx: Tx, services: Services, webhook_id: str, payload_id: str) -> str:
    """Stores the payload again and returns the new id. Its signature is not verified again."""
    webhook = await find(tx, webhook_id)
    row = await queries.find_payload(tx, webhook_id, payload_id)
    if row is None:
        raise PayloadNotFound(f"This webhook received no payload {payload_id[:64]}")
    stored_headers: dict[str, str] = row["headers"]
    payload = Payload(row["body"], stored_headers, row["source_ip"], payload_id)
    fields = {name: getattr(webhook, name) for name in ("id", "tenant_id", "name", "workflow_id")}
    content = decode_body(row["body"], stored_headers.get("content-type", ""))
    return await store(tx, services, fields, payload, content)


async def store(
    tx: Tx, services: Services, webhook: Row | dict[str, Any], payload: Payload, content: Any
) -> str:
    """Stores the payload, emits its event and starts the workflow; returns the payload's id."""
    event_id, tenant_id = new_id("evt"), webhook["tenant_id"]
    event_content = content if len(payload.body) <= LISTED_BYTES else None
    received = IncomingWebhookReceived(
        webhook["id"], webhook["name"], len(payload.body), event_content, payload.replay_of
    )
    await events.emit(tx, received, tenant_id=tenant_id, event_id=event_id)
    values = (payload.body, as_json(payload.headers), payload.source_ip, payload.replay_of)
    await queries.insert_payload(tx, tenant_id, event_id, webhook["id"], *values)
    if webhook["workflow_id"] is not None:
        execution_id = await workflow_trigger.start_workflow(
            tx, services, webhook, event_id, content
        )
        if execution_id is not None:
            await queries.set_execution(tx, tenant_id, event_id, execution_id)
    return event_id


def _select_headers(request_headers: dict[str, str]) -> dict[str, str]:
    """Returns the headers to store, without credentials.

    The content type comes first, so that the limit never drops it: a replay needs it.
    """
    ordered = sorted(request_headers.items(), key=lambda item: item[0] != "content-type")
    return {
        storable(name): storable(value)[:_MAX_HEADER_CHARS]
        for name, value in ordered[:_MAX_HEADERS]
        if not headers.is_credential(name)
    }


def _verify_signature(services: Services, webhook: Row, request: RawRequest) -> None:
    scheme = webhook["scheme"]
    if scheme is None:
        return
    try:
        secret = decrypt_secret(
            services.keyring, webhook["tenant_id"], webhook["id"], webhook["secret"]
        )
    except CannotOpen:
        log.warning("a webhook secret cannot be decrypted", incoming_webhook_id=webhook["id"])
        secret = None
    if secret is None or not verification.is_genuine(scheme, secret, webhook["header"], request):
        raise BadSignature("The signature does not match this payload, or it is too old")


def _is_handshake(content: dict[str, Any]) -> bool:
    """True for the request by which Slack verifies the address before it sends payloads."""
    return content.get("type") == "url_verification" and isinstance(content.get("challenge"), str)


async def _follow_cause(tx: Tx, tenant_id: str, event_id: str | None) -> None:
    """Continues the event chain of a delivery of this instance, so that the depth limit of chains
    ends a loop, also one through another tenant.
    """
    if not event_id or len(event_id) > _MAX_HEADER_CHARS:
        return
    await events.follow_cause(tx, tenant_id, storable(event_id))
