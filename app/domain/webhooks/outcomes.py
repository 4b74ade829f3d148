"""Recording what became of deliveries: many in one statement, each under its own lease."""

from datetime import datetime
from typing import Literal

import asyncpg
import msgspec

from app.domain.accounts import people
from app.domain.events import service as events
from app.domain.events.events import WorkDead
from app.domain.webhooks import queries
from app.domain.webhooks.events import WebhookDisabled
from app.domain.webhooks.parcels import Parcel
from app.domain.webhooks.sending import Answer, Verdict
from app.domain.webhooks.service import origin_of
from app.kit import logs, mail, trace
from app.kit.texts import as_json
from app.kit.trace import Trace
from app.parts import Parts
from db import fast
from db.ledger import WorkRow
from db.session import ALL_TENANTS, Tx

log = logs.get("webhooks")

FAILING_SECONDS = 5 * 24 * 3600
_STATES = {"delivered": "done", "pending": "pending", "failed": "dead"}


class Outcome(msgspec.Struct, frozen=True):
    """The columns of the statement; `number` is None where nothing was sent."""

    work_id: str
    lease_token: str
    state: str
    after: float | None
    error: str | None
    tenant_id: str
    delivery_id: str
    webhook_id: str
    number: int | None
    status: str
    code: int | None
    ms: int | None
    body: str | None
    url: str
    at: datetime | None
    healthy: bool | None


class Told(msgspec.Struct, frozen=True):
    """An outcome, and what is needed to tell of it."""

    row: WorkRow
    outcome: Outcome
    gone: bool = False


def is_trial(row: WorkRow, parcel: Parcel) -> bool:
    """Somebody waits for what the endpoint says to this one request."""
    return parcel.test and row.max_attempts == 1


def of_attempt(row: WorkRow, parcel: Parcel, answer: Answer, verdict: Verdict) -> Told:
    outcome = Outcome(
        row.id,
        row.lease_token,
        # Whoever tries an endpoint out is told what it said; nobody else need be.
        "done" if is_trial(row, parcel) else _STATES[verdict.status],
        verdict.after_seconds,
        answer.error,
        parcel.tenant_id,
        parcel.delivery_id,
        parcel.webhook_id,
        parcel.attempts + 1,
        verdict.status,
        answer.code,
        answer.milliseconds,
        answer.body,
        parcel.url,
        answer.at,
        # A trial tells nothing of how the endpoint fares.
        None if parcel.test else answer.error is None,
    )
    return Told(row, outcome, answer.is_gone and not parcel.test)


def unsent(row: WorkRow, parcel: Parcel, why: str) -> Told:
    """Nobody wants it any more; it can still be redelivered."""
    ids = (parcel.tenant_id, parcel.delivery_id, parcel.webhook_id)
    outcome = Outcome(
        row.id, row.lease_token, "cancelled", None, why, *ids,
        None, "failed", None, None, None, parcel.url, None, None,
    )  # fmt: skip
    return Told(row, outcome)


async def record(parts: Parts, told: list[Told]) -> list[bool | Exception]:
    """True for each whose lease still held. What is wrong with one is nobody else's affair."""
    try:
        return list(await _record(parts, told))
    except asyncpg.PostgresError as error:
        if len(told) == 1 or not fast.was_refused(error):
            raise
    found: list[bool | Exception] = []
    for one in told:
        try:
            found += await _record(parts, [one])
        except Exception as error:  # noqa: BLE001  # passed on to whoever it concerns
            found.append(error)
    return found


async def record_alone(parts: Parts, told: Told) -> bool:
    """For one that somebody held just then; whether its lease still holds is known by waiting."""
    (kept,) = await _record(parts, [told], together=False)
    return kept


async def _record(parts: Parts, told: list[Told], *, together: bool = True) -> list[bool]:
    """One transaction, whatever tenants they are of."""
    async with parts.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        rows = as_json([one.outcome for one in told])
        kept = await queries.settle(raw, rows, together=together)
        ours = [one for one in told if one.row.id in kept]
        await _bury(tx, [one for one in ours if one.outcome.state == "dead"])
        await _disable(parts, tx, ours)
    return [one.row.id in kept for one in told]


async def _bury(tx: Tx, told: list[Told]) -> None:
    for one in told:
        row, error = one.row, one.outcome.error or ""
        with _as_caused(row):
            dead = WorkDead(row.id, row.kind, row.ref_id, row.attempt, error)
            await events.emit(tx, dead, tenant_id=one.outcome.tenant_id)


async def _disable(parts: Parts, tx: Tx, told: list[Told]) -> None:
    failed = [one for one in told if one.outcome.healthy is False]
    if not failed:
        return
    raw = await tx.raw()
    tired = set(
        await queries.failing(raw, [one.outcome.webhook_id for one in failed], FAILING_SECONDS)
    )
    for one in sorted(failed, key=lambda one: one.outcome.webhook_id):
        if one.gone or one.outcome.webhook_id in tired:
            with _as_caused(one.row):
                await _disable_one(parts, tx, one)


async def _disable_one(parts: Parts, tx: Tx, one: Told) -> None:
    tenant_id, webhook_id = one.outcome.tenant_id, one.outcome.webhook_id
    reason: Literal["gone", "failing"] = "gone" if one.gone else "failing"
    found = await queries.disable(tx, tenant_id, webhook_id, reason)
    if found is None:
        return
    log.warning("webhook disabled", webhook_id=webhook_id, gone=one.gone)
    url = origin_of(found["url"])
    disabled = WebhookDisabled(webhook_id, url, reason, found["subscription_id"])
    event_id = await events.emit(tx, disabled, tenant_id=tenant_id)
    address = await people.address_of(tx, tenant_id, found["created_by"])
    if address is not None:
        await mail.queue(
            tx,
            parts.keyring,
            parts.doorbell,
            tenant_id=tenant_id,
            recipient=address,
            subject="A webhook of yours was switched off",
            text=_letter(disabled),
            cause_event_id=event_id,
        )


def _letter(disabled: WebhookDisabled) -> str:
    """About the webhook, or the subscription whose own address it was."""
    kind, name, where = "webhook", disabled.webhook_id, "/api/v1/webhooks"
    if disabled.subscription_id is not None:
        kind, name = "subscription", disabled.subscription_id
        where = "/api/v1/event-subscriptions"
    why = (
        "The endpoint answered 410 Gone, which says that it wants no more deliveries."
        if disabled.reason == "gone"
        else "Every delivery to it has failed for five days."
    )
    return (
        f"The {kind} {name} delivers no more events:\n\n    {disabled.url}\n\n{why}\n\n"
        f"Once the endpoint works again, set `active` to true by PUT {where}/{name}. What could "
        f"not be delivered is listed at {where}/{name}/executions and can be redelivered there.\n"
    )


class _as_caused:  # noqa: N801  # reads as the statement that it is
    """What is emitted here belongs to the chain of this work, not to that of its neighbours."""

    def __init__(self, row: WorkRow) -> None:
        self._trace = Trace(row.correlation_id, cause_event_id=row.cause_event_id)

    def __enter__(self) -> None:
        self._before = trace.known()
        trace.begin(self._trace)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            trace.begin(self._before)
