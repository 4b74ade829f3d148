"""The data needed to send an event to an endpoint, loaded for many deliveries at once."""

from datetime import datetime

import msgspec
from multidict import CIMultiDict

from app.domain.messaging.deliveries import queries
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from db.fast import Row
from db.session import Tx


class SignedHeaders(msgspec.Struct, frozen=True):
    """The headers of one attempt, and the endpoint's keys that signed them."""

    keys: EndpointKeys
    headers: CIMultiDict[str]

    def __repr__(self) -> str:
        return "SignedHeaders(…)"


class DeliveryRequest(msgspec.Struct, frozen=True):
    """`body` is the same object for all endpoints of one event: it is encoded once. A request that
    is not `signed` yet is signed when it is sent.
    """

    delivery_id: str
    tenant_id: str
    webhook_id: str
    url: str
    active: bool
    keys: bytes
    previous_until: datetime | None
    event_id: str
    event_type: str
    test: bool
    attempts: int
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
        delivery_id,
        endpoint["tenant_id"],
        endpoint["webhook_id"],
        endpoint["url"],
        endpoint["active"],
        endpoint["keys"],
        endpoint["previous_until"],
        event["event_id"],
        event["event_type"],
        event["test"],
        0,
        body,
    )


_LOADED_FIELDS = tuple(
    name for name in DeliveryRequest.__struct_fields__ if name not in {"body", "signed"}
)


async def load(tx: Tx, delivery_ids: list[str]) -> dict[str, DeliveryRequest]:
    """Returns requests by delivery id, without deliveries that are finished or deleted."""
    deliveries, events = await queries.load_pending(tx, delivery_ids)
    bodies = {event["event_id"]: encode_body(event) for event in events}
    requests: dict[str, DeliveryRequest] = {}
    for row in deliveries:
        if row["event_id"] in bodies:
            values = {name: row[name] for name in _LOADED_FIELDS}
            requests[row["id"]] = DeliveryRequest(**values, body=bodies[row["event_id"]])
    return requests
