"""Records the outcomes of attempts: many in one statement, each under its own lease. A message that
a channel failed to deliver goes to the next active channel of the same type.
"""

from functools import partial

import msgspec

from app.domain.events import service as events
from app.domain.notifications import delivery_queries, failover
from app.domain.notifications.outgoing import Outgoing
from app.domain.notifications.sending import Attempt, NextStep, SendRequest
from app.kit import logs
from app.kit.batches import run_together
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db.ledger import WorkRow
from db.session import ALL_TENANTS, Tx

log = logs.get("notifications")

_STATES = {"delivered": "done", "pending": "pending", "failed": "dead"}


class OutcomeRow(msgspec.Struct, frozen=True):
    """The columns of the statement."""

    work_id: str
    lease_token: str
    state: str
    after: float | None
    error: str | None
    tenant_id: str
    delivery_id: str
    channel_id: str
    number: int
    status: str
    ms: int | None
    error_code: str | None
    next_log_id: str


class AttemptOutcome(msgspec.Struct, frozen=True):
    work: WorkRow
    request: SendRequest
    row: OutcomeRow


def build_outcome(
    work: WorkRow, request: SendRequest, attempt: Attempt, step: NextStep
) -> AttemptOutcome:
    # A failed test emits no event: the caller of the API reads the answer.
    state = "done" if request.is_test else _STATES[step.status]
    row = OutcomeRow(
        work.id,
        work.lease_token,
        state,
        step.after_seconds,
        attempt.error,
        request.tenant_id,
        request.id,
        request.channel_id,
        request.attempt + 1,
        step.status,
        attempt.milliseconds,
        attempt.code,
        new_id("ntl"),
    )
    return AttemptOutcome(work, request, row)


async def record(
    services: Services, outcomes: list[AttemptOutcome]
) -> list[str | Exception | None]:
    """Returns the state of the work after each outcome, None where its lease is lost, or the error
    that prevented its recording; the others are recorded.
    """
    return await run_together(outcomes, partial(_record, services))


async def record_alone(services: Services, outcome: AttemptOutcome) -> str | None:
    """Records an outcome whose row another transaction has locked; waits for the lock."""
    (state,) = await _record(services, [outcome], skip_locked=False)
    return state


async def _record(
    services: Services, outcomes: list[AttemptOutcome], *, skip_locked: bool = True
) -> list[str | None]:
    """Records outcomes of any tenants in one transaction."""
    async with services.db.tx(ALL_TENANTS) as tx:
        failed = [item for item in outcomes if item.row.state == "dead"]
        replacements = await failover.find_replacements(
            services.keyring, tx, [item.request for item in failed]
        )
        rows = [
            msgspec.structs.replace(item.row, state="done")
            if item.row.delivery_id in replacements
            else item.row
            for item in outcomes
        ]
        connection = await tx.raw()
        written = await delivery_queries.record(connection, as_json(rows), skip_locked=skip_locked)
        for item in failed:
            if item.work.id in written:
                await _on_failed(tx, item, replacements.get(item.row.delivery_id))
    return [row.state if row.work_id in written else None for row in rows]


async def _on_failed(tx: Tx, item: AttemptOutcome, replacement: list[Outgoing] | None) -> None:
    request = item.request
    if replacement is None:
        with events.chain_of(item.work):
            await events.emit_dead(tx, item.work, item.row.error or "")
        return
    log.info(
        "notification goes through another channel",
        channel_id=request.channel_id,
        next_channel_id=replacement[0].channel_id,
    )
    await failover.add(tx, request, replacement)
