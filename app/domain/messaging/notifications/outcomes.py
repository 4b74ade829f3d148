"""Records the outcomes of attempts: many in one statement, each under its own lease. A message that
a channel failed to deliver goes to the next active channel of the same type.
"""

from functools import partial

import msgspec

from app.domain.messaging.notifications import delivery_queries, failover
from app.domain.messaging.notifications.outgoing import Outgoing
from app.domain.messaging.notifications.sending import Attempt, ErrorCode, NextStep, SendRequest
from app.domain.platform.events import api as events
from app.jobs.batches import run_together
from app.kit import logs
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
    code: ErrorCode | None


def build_outcome(
    work: WorkRow, request: SendRequest, attempt: Attempt, step: NextStep
) -> AttemptOutcome:
    state = _STATES[step.status]
    if attempt.code == "recipient_inactive":
        state = "cancelled"
    elif request.is_test:
        # A failed test emits no event: the caller of the API reads the answer.
        state = "done"
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
    return AttemptOutcome(work, request, row, attempt.code)


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
        requests = [
            item.request for item in failed if failover.may_be_replaced(item.request, item.code)
        ]
        replacements = await failover.find_replacements(services.keyring, tx, requests)
        rows = [
            msgspec.structs.replace(item.row, state="done")
            if item.row.delivery_id in replacements
            or failover.goes_by_own_server(item.request, item.code)
            else item.row
            for item in outcomes
        ]
        connection = await tx.raw()
        written = await delivery_queries.record(connection, as_json(rows), skip_locked=skip_locked)
        for item in failed:
            if item.work.id in written:
                with events.chain_of(item.work):
                    replacement = replacements.get(item.row.delivery_id)
                    await _on_failed(services, tx, item, replacement)
    return [row.state if row.work_id in written else None for row in rows]


async def _on_failed(
    services: Services, tx: Tx, item: AttemptOutcome, replacement: Outgoing | None
) -> None:
    """Sends the message another way where there is one, or says that it is lost."""
    request = item.request
    if replacement is not None:
        if await failover.add(tx, request, replacement):
            log.info(
                "notification goes through another channel",
                channel_id=request.channel_id,
                next_channel_id=replacement.channel_id,
            )
            return
    elif failover.goes_by_own_server(request, item.code):
        await failover.send_by_own_server(tx, services.keyring, request)
        return
    await events.emit_dead(tx, item.work, item.row.error or "")
