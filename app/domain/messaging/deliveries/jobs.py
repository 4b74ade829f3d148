"""Job functions: send deliveries."""

import asyncio
from functools import partial

from app.domain.job import Job, LeaseLost
from app.domain.messaging.deliveries import outcomes, requests, sending
from app.domain.messaging.deliveries import service as deliveries
from app.domain.messaging.deliveries.outcomes import AttemptOutcome
from app.domain.messaging.deliveries.requests import DeliveryRequest
from app.domain.messaging.deliveries.sending import DeliveryEgress
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

# Outcomes of attempts that end within this time are written together.
_BATCH_SECONDS = 0.003
_INACTIVE = "the webhook was not active when its turn came"


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
