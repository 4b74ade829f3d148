"""What is needed to send an event to an endpoint, read for many deliveries at once."""

from datetime import datetime

import msgspec

from app.domain.webhooks import queries
from db.fast import Row
from db.session import Tx


class Parcel(msgspec.Struct, frozen=True):
    """`body` is the same object for all endpoints of one event: it is written once."""

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


class _Body(msgspec.Struct, frozen=True):
    id: str
    type: str
    created_at: datetime
    correlation_id: str
    data: msgspec.Raw


def body_of(row: Row) -> bytes:
    """The same bytes whenever it is asked for: the log keeps its data in one order."""
    raw = msgspec.Raw(row["data"].encode())
    told = _Body(row["event_id"], row["event_type"], row["told_at"], row["correlation_id"], raw)
    return msgspec.json.encode(told)


def packed(endpoint: Row, event: Row, delivery_id: str, body: bytes) -> Parcel:
    """For a delivery that was written just now."""
    return Parcel(
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


async def load(tx: Tx, delivery_ids: list[str]) -> dict[str, Parcel]:
    bodies: dict[str, bytes] = {}
    found: dict[str, Parcel] = {}
    deliveries, events = await queries.to_send(tx, delivery_ids)
    for row in events:
        bodies[row["event_id"]] = body_of(row)
    for row in deliveries:
        if row["event_id"] in bodies:
            body = bodies[row["event_id"]]
            values = {name: row[name] for name in Parcel.__struct_fields__ if name != "body"}
            found[row["id"]] = Parcel(**values, body=body)
    return found
