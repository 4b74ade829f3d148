"""Records the outcomes of attempts: many in one statement, each under its own lease."""

from datetime import datetime
from functools import partial
from typing import Final, Literal

import msgspec

from app.domain.area import Areas
from app.domain.messaging.deliveries import queries
from app.domain.messaging.deliveries.endpoints import origin_of
from app.domain.messaging.deliveries.events import WebhookDisabled
from app.domain.messaging.deliveries.requests import DeliveryRequest
from app.domain.messaging.deliveries.sending import Attempt, NextStep
from app.domain.platform.events import api as events
from app.jobs.batches import run_together
from app.kit import logs
from app.kit.texts import as_json
from app.services import Services
from db.ledger import WorkRow
from db.session import ALL_TENANTS, Tx

log = logs.get("deliveries")

FAILING_SECONDS: Final = 5 * 24 * 3600
_STATES = {"delivered": "done", "pending": "pending", "failed": "dead"}


class OutcomeRow(msgspec.Struct, frozen=True):
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


class AttemptOutcome(msgspec.Struct, frozen=True):
    """The row that records an attempt, and the work that the attempt belongs to."""

    work: WorkRow
    row: OutcomeRow
    is_gone: bool = False


def is_test_delivery(work: WorkRow, request: DeliveryRequest) -> bool:
    """True when a request of the API waits for the response to this only attempt."""
    return request.test and work.max_attempts == 1


def build_outcome(
    work: WorkRow, request: DeliveryRequest, attempt: Attempt, step: NextStep
) -> AttemptOutcome:
    row = OutcomeRow(
        work.id,
        work.lease_token,
        # A failed test emits no event: the caller of the API reads the response.
        "done" if is_test_delivery(work, request) else _STATES[step.status],
        step.after_seconds,
        attempt.error,
        request.tenant_id,
        request.delivery_id,
        request.webhook_id,
        request.attempts + 1,
        step.status,
        attempt.code,
        attempt.milliseconds,
        attempt.body,
        request.url,
        attempt.at,
        # A test says nothing about the endpoint's health.
        None if request.test else attempt.error is None,
    )
    return AttemptOutcome(work, row, attempt.is_gone and not request.test)


def build_unsent_outcome(work: WorkRow, request: DeliveryRequest, reason: str) -> AttemptOutcome:
    """Returns the outcome for an inactive endpoint; the delivery can still be redelivered."""
    row = OutcomeRow(
        work_id=work.id,
        lease_token=work.lease_token,
        state="cancelled",
        after=None,
        error=reason,
        tenant_id=request.tenant_id,
        delivery_id=request.delivery_id,
        webhook_id=request.webhook_id,
        number=None,
        status="failed",
        code=None,
        ms=None,
        body=None,
        url=request.url,
        at=None,
        healthy=None,
    )
    return AttemptOutcome(work, row)


async def record(services: Services, outcomes: list[AttemptOutcome]) -> list[bool | Exception]:
    """Returns True for each outcome whose lease is still valid, or the error that prevented its
    recording; the others are recorded.
    """
    return await run_together(outcomes, partial(_record, services))


async def record_alone(services: Services, outcome: AttemptOutcome) -> bool:
    """Records an outcome whose row another transaction has locked; waits for the lock."""
    (was_written,) = await _record(services, [outcome], skip_locked=False)
    return was_written


async def _record(
    services: Services, outcomes: list[AttemptOutcome], *, skip_locked: bool = True
) -> list[bool]:
    """Records outcomes of any tenants in one transaction."""
    async with services.db.tx(ALL_TENANTS) as tx:
        rows = as_json([outcome.row for outcome in outcomes])
        written = await queries.record(await tx.raw(), rows, skip_locked=skip_locked)
        recorded = [outcome for outcome in outcomes if outcome.work.id in written]
        for outcome in recorded:
            if outcome.row.state == "dead":
                with events.chain_of(outcome.work):
                    await events.emit_dead(tx, outcome.work, outcome.row.error or "")
        await _disable_failing(services, tx, recorded)
    return [outcome.work.id in written for outcome in outcomes]


async def _disable_failing(services: Services, tx: Tx, outcomes: list[AttemptOutcome]) -> None:
    failed = [outcome for outcome in outcomes if outcome.row.healthy is False]
    if not failed:
        return
    ids = [outcome.row.webhook_id for outcome in failed]
    failing = set(await queries.find_failing(await tx.raw(), ids, FAILING_SECONDS))
    for outcome in sorted(failed, key=lambda item: item.row.webhook_id):
        if outcome.is_gone or outcome.row.webhook_id in failing:
            with events.chain_of(outcome.work):
                await _disable(services, tx, outcome)


async def _disable(services: Services, tx: Tx, outcome: AttemptOutcome) -> None:
    tenant_id, webhook_id = outcome.row.tenant_id, outcome.row.webhook_id
    reason: Literal["gone", "failing"] = "gone" if outcome.is_gone else "failing"
    webhook = await queries.disable(tx, tenant_id, webhook_id, reason)
    if webhook is None:
        return
    await services.get(Areas).on_webhook_disabled(tx, tenant_id, webhook_id)
    log.warning("webhook disabled", webhook_id=webhook_id, reason=reason)
    url = origin_of(webhook["url"])
    owner_id, subscription_id = webhook["created_by"], webhook["subscription_id"]
    disabled = WebhookDisabled(webhook_id, url, reason, subscription_id, owner_id)
    await events.emit(tx, disabled, tenant_id=tenant_id)
