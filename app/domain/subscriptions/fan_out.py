"""An event handed out: a delivery to each endpoint that wants it, and each subscription's action.

All of it is written in one transaction as work of its own; handing out the same event twice adds
nothing.
"""

from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

import msgspec

from app.domain.events import service as events
from app.domain.events.events import ChainStopped
from app.domain.events.service import DEEPEST, Told
from app.domain.subscriptions import filters, queries
from app.domain.subscriptions.actions import ACTIONS
from app.domain.webhooks import deliveries, parcels
from app.domain.webhooks.deliveries import Begun, Leases
from app.domain.webhooks.parcels import Parcel
from app.kit import logs
from app.kit.ids import new_id
from app.parts import Parts
from db.fast import Row
from db.ledger import WorkRow
from db.session import Tx

log = logs.get("events")

# How much work may come of one event, beyond what it sets going itself.
WIDEST = 1000
_TOLD = 1_000_000
# How many workers are woken for; the others' poller finds the rest.
_WOKEN = 32


class Ready(NamedTuple):
    """A delivery that is leased already, with all that is needed to send it."""

    work: WorkRow
    parcel: Parcel


class Begin(NamedTuple):
    """Deliveries that begin: those to be sent by whoever asked, and how many others there are."""

    ready: Collection[Ready] = ()
    waiting: int = 0


# Of a tenant's endpoints, those that there is room for.
Reserve = Callable[[str, list[str]], Collection[str]]


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


async def hand_out(parts: Parts, tx: Tx, tenant_id: str, event_id: str, reserve: Reserve) -> Begin:
    """Gives the deliveries that begin with it."""
    row = await queries.event(tx, tenant_id, event_id)
    if row is None or not await _goes_on(tx, tenant_id, row):
        # Deleted with what it told of; or too much came of it.
        return Begin()
    data = msgspec.json.decode(row["data"])
    wanting = await matching(tx, tenant_id, row["event_type"], data)
    begun = await _deliver(parts, tx, tenant_id, row, wanting, reserve)
    acting = await _act(tx, tenant_id, row, [one.id for one in wanting if one.needs_work])
    if row["root_id"] is not None:
        made = len(begun.ready) + begun.waiting + acting
        await queries.add_offspring(tx, tenant_id, row["root_id"], made)
    if wanting:
        await queries.count(tx, tenant_id, [one.id for one in wanting])
    return begun


async def _act(tx: Tx, tenant_id: str, row: Row, subscription_ids: list[str]) -> int:
    """How many of them have something to do."""
    if not subscription_ids:
        return 0
    works = [new_id("wrk") for _ in subscription_ids]
    made = await queries.add_actions(tx, tenant_id, row, subscription_ids, works, _WOKEN)
    for work_id in set(works[:_WOKEN]) & set(made):
        tx.wake("events.act", work_id)
    return len(made)


async def _deliver(
    parts: Parts, tx: Tx, tenant_id: str, row: Row, wanting: list[Wanting], reserve: Reserve
) -> Begin:
    named = [one.endpoint_id for one in wanting if one.endpoint_id is not None]
    endpoints = await deliveries.endpoints(tx, tenant_id, row["event_type"], named)
    if not endpoints:
        return Begin()
    told = Told(row["event_id"], row["event_type"], row["correlation_id"])
    most, ids = len(parts.settings.webhook_retry_delays), list(endpoints)
    tokens = {webhook_id: new_id("lea") for webhook_id in reserve(tenant_id, ids)}
    leases = Leases(tokens, parts.settings.lease_seconds)
    begun = await deliveries.begin(tx, tenant_id, told, ids, most=most, leases=leases)
    body = parcels.body_of(row)
    ready = [
        Ready(
            _work(one, tenant_id, told, most),
            parcels.packed(endpoints[one.webhook_id], row, one.delivery_id, body),
        )
        for one in begun
        if one.lease_token is not None
    ]
    return Begin(ready, len(begun) - len(ready))


def _work(begun: Begun, tenant_id: str, told: Told, most: int) -> WorkRow:
    """Its row, as it was written."""
    return WorkRow(
        begun.work_id,
        tenant_id,
        "webhooks.deliver",
        begun.delivery_id,
        1,
        most,
        begun.lease_token or "",
        told.correlation_id,
        told.id,
        begun.webhook_id,
    )


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
    event_id, event_type = row["event_id"], row["event_type"]
    log.warning("chain of causes stopped", event_id=event_id, type=event_type, reason=reason)
    stopped = ChainStopped(event_id, event_type, row["depth"], reason)
    await events.record(tx, stopped, tenant_id=tenant_id)
