"""An event handed out: a delivery to each endpoint that wants it, and each subscription's action.

All of it is written in one transaction as work of its own; handing out the same event twice adds
nothing.
"""

from typing import Any

import msgspec

from app.domain.events import service as events
from app.domain.events.events import ChainStopped
from app.domain.events.service import DEEPEST, Told
from app.domain.subscriptions import filters, queries
from app.domain.subscriptions.actions import ACTIONS
from app.domain.webhooks import deliveries
from app.domain.webhooks.deliveries import Begun
from app.kit import logs, work
from app.parts import Parts
from db.fast import Row
from db.session import Tx

log = logs.get("events")


class Wanting(msgspec.Struct, frozen=True):
    """A subscription whose filters let the event through."""

    id: str
    action_type: str
    endpoint_id: str | None
    endpoint_active: bool

    @property
    def needs_work(self) -> bool:
        """Or there is nowhere to deliver to, which its work will say."""
        return not ACTIONS[self.action_type].delivers or self.endpoint_id is None


async def matching(tx: Tx, tenant_id: str, event_type: str, data: Any) -> list[Wanting]:
    found = []
    for row in await queries.wanting(tx, tenant_id, event_type):
        wanted = msgspec.json.decode(row["filters"]) if row["filters"] else None
        if filters.match(wanted, data):
            endpoint = (row["endpoint_id"], bool(row["endpoint_active"]))
            found.append(Wanting(row["id"], row["action_type"], *endpoint))
    return found


async def hand_out(parts: Parts, tx: Tx, tenant_id: str, event_id: str) -> list[Begun]:
    """Gives the deliveries that begin with it."""
    row = await queries.event(tx, tenant_id, event_id)
    if row is None:
        # Deleted with what it told of.
        return []
    if row["depth"] > DEEPEST:
        await _stop(tx, tenant_id, row)
        return []
    wanting = await matching(tx, tenant_id, row["type"], msgspec.json.decode(row["data"]))
    named = [one.endpoint_id for one in wanting if one.endpoint_id and one.endpoint_active]
    endpoints = set(await queries.webhooks(tx, tenant_id, row["type"]))
    endpoints |= await queries.lock_endpoints(tx, tenant_id, sorted(named)) if named else set()
    begun: list[Begun] = []
    if endpoints:
        told = Told(row["id"], row["type"], row["correlation_id"])
        most = len(parts.settings.webhook_retry_delays)
        begun = await deliveries.begin(tx, tenant_id, told, sorted(endpoints), most=most)
    for one in wanting:
        if one.needs_work:
            await work.accept(
                tx,
                parts.doorbell,
                "events.act",
                tenant_id=tenant_id,
                ref_id=one.id,
                dedupe_key=f"{one.id}:{event_id}",
                cause_event_id=event_id,
            )
    if wanting:
        await queries.count(tx, tenant_id, [one.id for one in wanting])
    return begun


async def _stop(tx: Tx, tenant_id: str, row: Row) -> None:
    log.warning("chain of causes stopped", event_id=row["id"], type=row["type"])
    stopped = ChainStopped(row["id"], row["type"], row["depth"])
    await events.emit(tx, stopped, tenant_id=tenant_id)
