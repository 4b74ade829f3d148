"""Job functions: fan out events, send deliveries, run the actions of subscriptions."""

import asyncio
from functools import partial

from app.domain.deliveries import outcomes, requests, sending
from app.domain.deliveries import service as deliveries
from app.domain.deliveries.outcomes import AttemptOutcome
from app.domain.deliveries.requests import DeliveryRequest
from app.domain.deliveries.sending import DeliveryEgress
from app.domain.storage.errors import QuotaExceeded
from app.domain.subscriptions.errors import CannotRunAction
from app.domain.subscriptions.fan_out import fan_out
from app.domain.subscriptions.run_action import load_action, render_action, run_action
from app.domain.workflows.errors import TooManyPendingExecutions
from app.kit.errors import Unavailable
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx
from workers.job import GiveUp, Job, LeaseLost, Retry

# Outcomes of attempts that end within this time are written together.
_BATCH_SECONDS = 0.003
_INACTIVE = "the webhook was not active when its turn came"


async def fan_out_event(job: Job) -> None:
    async with job.finish() as tx:
        job.follow_up = await fan_out(job.services, tx, job.tenant_id, job.ref_id, job.reserve)


async def run_subscription_action(job: Job) -> None:
    try:
        await _run_action(job)
    except CannotRunAction as error:
        raise GiveUp(str(error)) from error
    except (TooManyPendingExecutions, QuotaExceeded, Unavailable) as error:
        raise Retry(error.message) from error


async def _run_action(job: Job) -> None:
    services = job.services
    async with job.read() as tx:
        triggered = await load_action(tx, job.tenant_id, job.ref_id, job.row.cause_event_id or "")
    if triggered is not None:
        triggered = await render_action(services, triggered)
    async with job.finish() as tx:
        if triggered is not None:
            await run_action(services, tx, triggered)


async def deliver(job: Job) -> None:
    """Makes one attempt. Its outcome is written in one statement with others of the same moment."""
    services, request = job.services, job.payload
    if not isinstance(request, DeliveryRequest):
        async with job.read() as tx:
            request = (await requests.load(tx, [job.ref_id])).get(job.ref_id)
    if request is None:
        # Deleted with its webhook or its event, or delivered already.
        return
    outcome = await _attempt(services, job.row, request)
    await asyncio.sleep(_BATCH_SECONDS)
    record = partial(outcomes.record, services)
    was_written = await services.batches.join("outcomes", outcome, record)
    if not was_written and not await outcomes.record_alone(services, outcome):
        raise LeaseLost(job.row.id)
    job.outcome = {"done": "done", "pending": "retried"}.get(outcome.row.state, "dead")
    if outcomes.is_test_delivery(job.row, request):
        await services.doorbell.announce_done(job.row.id)


async def _attempt(services: Services, row: WorkRow, request: DeliveryRequest) -> AttemptOutcome:
    if not request.active and not outcomes.is_test_delivery(row, request):
        return outcomes.build_unsent_outcome(row, request, _INACTIVE)
    egress = services.get(DeliveryEgress)
    attempt = await sending.send(egress, services.keyring, request)
    delays = services.settings.webhook_retry_delays
    step = sending.next_step(attempt, row.attempt, delays, max_attempts=row.max_attempts)
    return outcomes.build_outcome(row, request, attempt, step)


async def on_dead_delivery(_services: Services, tx: Tx, row: WorkRow, error: str) -> None:
    await deliveries.on_dead(tx, row.tenant_id or "", row.ref_id or "", error)
