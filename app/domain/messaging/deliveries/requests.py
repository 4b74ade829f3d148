"""The data needed to send an event to an endpoint, loaded for many deliveries at once, and the
headers that identify and sign it.
"""

from datetime import datetime

import msgspec
from multidict import CIMultiDict

from app.crypto.keyring import CannotOpen, Keyring
from app.domain.messaging.outbox.api import OutboxRequest
from app.kit import clock
from app.kit.pacing import Pace
from app.net import headers
from app.net.egress import custom_headers
from db.fast import Row
from db.session import Tx

from . import endpoint_keys, queries, signing
from .endpoint_keys import EndpointKeys

_USER_AGENT = "Parley-Webhooks/1"
# The caller of `sign_all` has a transaction open, which must not wait for hashes of large bodies.
_MAX_BODY_BYTES = 64 * 1024


class SignedHeaders(msgspec.Struct, frozen=True):
    """The headers of one attempt, and the endpoint's keys that signed them."""

    keys: EndpointKeys
    headers: CIMultiDict[str]

    def __repr__(self) -> str:
        return "SignedHeaders(…)"


class DeliveryRequest(OutboxRequest, frozen=True, kw_only=True):
    """`body` is the same object for all endpoints of one event: it is encoded once. A request that
    is not `signed` yet is signed when it is sent.
    """

    url: str
    active: bool
    keys: bytes
    previous_until: datetime | None
    event_id: str
    event_type: str
    body: bytes
    signed: SignedHeaders | None = None


class _Body(msgspec.Struct, frozen=True):
    id: str
    type: str
    created_at: datetime
    correlation_id: str
    data: msgspec.Raw


def encode_body(event: Row) -> bytes:
    """Returns the same bytes every time: the log stores the keys of the data in one order."""
    body = _Body(
        event["event_id"],
        event["event_type"],
        event["emitted_at"],
        event["correlation_id"],
        msgspec.Raw(event["data"].encode()),
    )
    return msgspec.json.encode(body)


def new_request(endpoint: Row, event: Row, delivery_id: str, body: bytes) -> DeliveryRequest:
    """Returns the request of a delivery that was created just now."""
    return DeliveryRequest(
        delivery_id=delivery_id,
        tenant_id=endpoint["tenant_id"],
        endpoint_id=endpoint["webhook_id"],
        attempts=0,
        is_test=event["test"],
        url=endpoint["url"],
        active=endpoint["active"],
        keys=endpoint["keys"],
        previous_until=endpoint["previous_until"],
        event_id=event["event_id"],
        event_type=event["event_type"],
        body=body,
    )


async def load(tx: Tx, delivery_ids: list[str]) -> dict[str, DeliveryRequest]:
    """Returns requests by delivery id, without deliveries that are finished or deleted."""
    deliveries, events = await queries.load_pending(tx, delivery_ids)
    bodies = {event["event_id"]: encode_body(event) for event in events}
    return {
        row["delivery_id"]: DeliveryRequest(**row, body=bodies[row["event_id"]])
        for row in deliveries
        if row["event_id"] in bodies
    }


def sign(keyring: Keyring, request: DeliveryRequest) -> SignedHeaders:
    """Raises CannotOpen where the root key that sealed the endpoint's keys is lost."""
    keys = endpoint_keys.unseal(keyring, request.tenant_id, request.endpoint_id, request.keys)
    return SignedHeaders(keys, _build_headers(request, keys))


async def sign_all(keyring: Keyring, requests: list[DeliveryRequest]) -> dict[str, DeliveryRequest]:
    """Returns the requests by delivery. Those with large bodies, and those whose keys cannot be
    opened, are left to their attempts, which sign them or report it.

    One after another, signatures take a third of the time that they take between requests.
    """
    signed: dict[str, DeliveryRequest] = {}
    pace = Pace()
    for request in requests:
        signed[request.delivery_id] = _sign_small(keyring, request)
        await pace.rest()
    return signed


def _sign_small(keyring: Keyring, request: DeliveryRequest) -> DeliveryRequest:
    if len(request.body) > _MAX_BODY_BYTES:
        return request
    try:
        return msgspec.structs.replace(request, signed=sign(keyring, request))
    except CannotOpen:
        return request


def _build_headers(request: DeliveryRequest, keys: EndpointKeys) -> CIMultiDict[str]:
    timestamp = int(clock.now().timestamp())
    secrets = keys.signing_secrets(request.previous_until)
    sent = custom_headers(
        {
            name: value
            for name, value in keys.headers.items()
            if not headers.is_reserved_in_delivery(name)
        }
    )
    sent.setdefault("User-Agent", _USER_AGENT)
    sent["Content-Type"] = "application/json"
    sent["Accept-Encoding"] = "identity"
    sent.update(
        signing.build_headers(
            secrets, request.event_id, request.event_type, timestamp, request.body
        )
    )
    if request.attempts:
        sent["X-Service-Retry-Count"] = str(request.attempts)
    if request.is_test:
        sent["X-Service-Test"] = "true"
    return sent
