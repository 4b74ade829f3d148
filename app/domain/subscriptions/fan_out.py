"""An event handed out: a delivery to each endpoint that wants it, and each subscription's action.

All of it is written in one transaction as work of its own; handing out the same event twice adds
nothing.
"""

from typing import Any, Literal

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

# How much work may come of one event, beyond what it sets going itself.
WIDEST = 1000
_TOLD = 1_000_000


class Wanting(msgspec.Struct, frozen=True):
    """A subscription whose filters let the event through."""

    id: str
    action_type: str
    endpoint_id: str | None

    @property
    def needs_work(self) -> bool:
        """Or there is nowhere to deliver to, which its work will say."""
        return not ACTIONS[self.action_type].delivers or self.endpoint_id is None


async def matching(tx: Tx, tenant_id: str, event_type: str, data: Any) -> list[Wanting]:
    found = []
    for row in await queries.wanting(tx, tenant_id, event_type):
        wanted = msgspec.json.decode(row["filters"]) if row["filters"] else None
        if filters.match(wanted, data):
            found.append(Wanting(row["id"], row["action_type"], row["endpoint_id"]))
    return found


async def hand_out(parts: Parts, tx: Tx, tenant_id: str, event_id: str) -> list[Begun]:
    """Gives the deliveries that begin with it."""
    row = await queries.event(tx, tenant_id, event_id)
    if row is None or not await _goes_on(tx, tenant_id, row):
        # Deleted with what it told of; or too much came of it.
        return []
    wanting = await matching(tx, tenant_id, row["type"], msgspec.json.decode(row["data"]))
    begun = await _deliver(parts, tx, tenant_id, row, wanting)
    acting = [one for one in wanting if one.needs_work]
    for one in acting:
        await work.accept(
            tx,
            parts.doorbell,
            "events.act",
            tenant_id=tenant_id,
            ref_id=one.id,
            dedupe_key=f"{one.id}:{event_id}",
            cause_event_id=event_id,
        )
    if row["root_id"] is not None:
        await queries.add_offspring(tx, tenant_id, row["root_id"], len(begun) + len(acting))
    if wanting:
        await queries.count(tx, tenant_id, [one.id for one in wanting])
    return begun


async def _deliver(
    parts: Parts, tx: Tx, tenant_id: str, row: Row, wanting: list[Wanting]
) -> list[Begun]:
    named = [one.endpoint_id for one in wanting if one.endpoint_id is not None]
    endpoints = set(await queries.webhooks(tx, tenant_id, row["type"]))
    endpoints |= await queries.lock_endpoints(tx, tenant_id, sorted(named)) if named else set()
    if not endpoints:
        return []
    told = Told(row["id"], row["type"], row["correlation_id"])
    most = len(parts.settings.webhook_retry_delays)
    return await deliveries.begin(tx, tenant_id, told, sorted(endpoints), most=most)


async def _goes_on(tx: Tx, tenant_id: str, row: Row) -> bool:
    """A chain ends after so many causes, and after so much work that came of it: neither a loop nor
    an avalanche goes on for ever.
    """
    if row["depth"] > DEEPEST:
        await _stop(tx, tenant_id, row, "too_long")
        return False
    if row["root_id"] is None:
        return True
    made = await queries.offspring(tx, tenant_id, row["root_id"])
    if made < WIDEST:
        return True
    if made < _TOLD:
        await queries.add_offspring(tx, tenant_id, row["root_id"], _TOLD)
        await _stop(tx, tenant_id, row, "too_wide")
    return False


async def _stop(tx: Tx, tenant_id: str, row: Row, reason: Literal["too_long", "too_wide"]) -> None:
    log.warning("chain of causes stopped", event_id=row["id"], type=row["type"], reason=reason)
    stopped = ChainStopped(row["id"], row["type"], row["depth"], reason)
    await events.record(tx, stopped, tenant_id=tenant_id)
