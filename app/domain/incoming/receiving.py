"""Taking in a payload: verified over its raw bytes, stored, told of, and only then answered."""

from typing import Any

import asyncpg
import msgspec

from app.domain.events import service as events
from app.domain.incoming import queries, verification, workflow_trigger
from app.domain.incoming.errors import BadSignature, IncomingWebhookNotFound, PayloadNotFound
from app.domain.incoming.events import IncomingWebhookReceived
from app.domain.incoming.payloads import read
from app.domain.incoming.queries import LISTED_BYTES
from app.domain.incoming.service import find, open_secret
from app.domain.incoming.verification import Received
from app.domain.tenants import service as tenants
from app.http.authorization import caller_of
from app.http.costs import COSTS
from app.http.dependencies import HttpRequest, services_of
from app.kit import headers, logs
from app.kit.crypto import CannotOpen
from app.kit.ids import new_id
from app.kit.limits import plan_of
from app.kit.texts import as_json, storable
from app.services import Services
from db.fast import Row
from db.session import Tx

log = logs.get("incoming")

MAX_BYTES = 1024 * 1024
_HEADER_CHARS = 4096
_MOST_HEADERS = 100
_NOTHING_HERE = "Nothing is received at this address"


class Payload(msgspec.Struct, frozen=True):
    body: bytes
    headers: dict[str, str]
    source_ip: str
    replay_of: str | None = None


async def receive(request: HttpRequest, slug: str) -> tuple[str, Any]:
    """The id of what was stored, and what it says."""
    services, body = services_of(request), await request.body()
    async with services.db.tx(None, autocommit=True) as tx:
        row = await queries.by_slug(tx, slug)
    if row is None:
        raise IncomingWebhookNotFound(_NOTHING_HERE)
    names = {name.lower(): value for name, value in request.headers.items()}
    _verify(services, row, Received(names, body))
    plan = plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    charged = ("incoming", row["tenant_id"], plan, COSTS["write"], "Too much is sent here")
    await tenants.charge_visitors(request, *charged)
    said = read(body, names.get("content-type", ""))
    if row["scheme"] == "slack" and isinstance(said, dict) and _is_handshake(said):
        return "", said
    payload = Payload(body, _kept(names), caller_of(request).source)
    try:
        async with services.db.tx(row["tenant_id"]) as tx:
            await _follow(tx, row["tenant_id"], names.get("x-service-event-id"))
            return await store(services, tx, row, payload, said), said
    except asyncpg.ForeignKeyViolationError:
        # Deleted since it was looked up.
        raise IncomingWebhookNotFound(_NOTHING_HERE) from None


async def replay(services: Services, tx: Tx, webhook_id: str, payload_id: str) -> str:
    """As if it came in once more; who sent it was checked the first time."""
    webhook = await find(tx, webhook_id)
    row = await queries.find_payload(tx, webhook.tenant_id, webhook_id, payload_id)
    if row is None:
        raise PayloadNotFound(f"This webhook received no payload {payload_id[:64]}")
    kept: dict[str, str] = msgspec.json.decode(row["headers"])
    payload = Payload(row["body"], kept, row["source_ip"], payload_id)
    of = {name: getattr(webhook, name) for name in ("id", "tenant_id", "name", "workflow_id")}
    return await store(services, tx, of, payload, read(row["body"], kept.get("content-type", "")))


async def store(
    services: Services, tx: Tx, webhook: Row | dict[str, Any], payload: Payload, said: Any
) -> str:
    """All of it together: the bytes, the event that tells of them, and what they set going."""
    event_id, tenant_id = new_id("evt"), webhook["tenant_id"]
    told = said if len(payload.body) <= LISTED_BYTES else None
    received = IncomingWebhookReceived(
        webhook["id"], webhook["name"], len(payload.body), told, payload.replay_of
    )
    await events.emit(tx, received, tenant_id=tenant_id, event_id=event_id)
    given = (payload.body, as_json(payload.headers), payload.source_ip, payload.replay_of)
    await queries.add(tx, tenant_id, event_id, webhook["id"], *given)
    ids = (tenant_id, webhook["id"], webhook["workflow_id"], event_id)
    execution_id = await workflow_trigger.begin(services, tx, *ids)
    if execution_id is not None:
        await queries.set_execution(tx, tenant_id, event_id, execution_id)
    return event_id


def _kept(names: dict[str, str]) -> dict[str, str]:
    """What may be shown. The type comes first: the body is read by it again, later."""
    ordered = sorted(names.items(), key=lambda item: item[0] != "content-type")
    return {
        storable(name): storable(value)[:_HEADER_CHARS]
        for name, value in ordered[:_MOST_HEADERS]
        if not headers.is_secret(name)
    }


def _verify(services: Services, row: Row, got: Received) -> None:
    if row["scheme"] is None:
        return
    try:
        secret = open_secret(services.keyring, row["tenant_id"], row["id"], row["secret"])
    except CannotOpen:
        log.warning("a secret does not open", incoming_webhook_id=row["id"])
        secret = None
    if secret is None or not verification.is_genuine(row["scheme"], secret, row["header"], got):
        raise BadSignature("The signature does not fit this payload, or it is too old")


def _is_handshake(said: dict[str, Any]) -> bool:
    """Slack asks once whether the address is ours before it sends anything."""
    return said.get("type") == "url_verification" and isinstance(said.get("challenge"), str)


async def _follow(tx: Tx, tenant_id: str, event_id: str | None) -> None:
    """A delivery of ours that comes back in goes on with its chain, which ends somewhere: also one
    that went through another tenant.
    """
    if not event_id or len(event_id) > _HEADER_CHARS:
        return
    await events.follow_cause(tx, tenant_id, storable(event_id))
