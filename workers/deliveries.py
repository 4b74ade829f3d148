"""Events handed out, deliveries made, and what subscriptions want done."""

import asyncio
from functools import partial

from app.domain.subscriptions import acting, fan_out
from app.domain.subscriptions.acting import CannotAct
from app.domain.webhooks import deliveries, outcomes, parcels, sending
from app.domain.webhooks.outcomes import Told
from app.domain.webhooks.parcels import Parcel
from app.parts import Parts
from db.ledger import WorkRow
from db.session import Tx
from workers.runner import GiveUp, Job, LeaseLost

_LINGER_SECONDS = 0.003
_INACTIVE = "the webhook was not active when its turn came"


async def hand_out(job: Job) -> None:
    tenant_id = job.row.tenant_id or ""
    async with job.finish() as tx:
        job.began = await fan_out.hand_out(job.parts, tx, tenant_id, job.ref_id, job.reserve)


async def act(job: Job) -> None:
    async with job.finish() as tx:
        ids = (job.row.tenant_id or "", job.ref_id, job.row.cause_event_id or "")
        try:
            await acting.act(job.parts, tx, *ids)
        except CannotAct as error:
            raise GiveUp(str(error)) from error


async def deliver(job: Job) -> None:
    """One attempt. Its outcome is written together with those of others that end just now."""
    parts, parcel = job.parts, job.given
    if not isinstance(parcel, Parcel):
        async with job.read() as tx:
            parcel = (await parcels.load(tx, [job.ref_id])).get(job.ref_id)
    if parcel is None:
        # Deleted with its webhook or its event, or delivered already.
        return
    told = await _attempt(parts, job.row, parcel)
    # So that those that end within these milliseconds are written together.
    await asyncio.sleep(_LINGER_SECONDS)
    kept = await parts.batches.join("outcomes", told, partial(outcomes.record, parts))
    if not kept and not await outcomes.record_alone(parts, told):
        raise LeaseLost(job.row.id)
    job.outcome = {"done": "done", "pending": "retried"}.get(told.outcome.state, "dead")
    if outcomes.is_trial(job.row, parcel):
        await parts.doorbell.announce_done(job.row.id)


async def _attempt(parts: Parts, row: WorkRow, parcel: Parcel) -> Told:
    if not parcel.active and not outcomes.is_trial(row, parcel):
        return outcomes.unsent(row, parcel, _INACTIVE)
    answer = await sending.send(parts.couriers, parts.keyring, parcel, parcel.attempts)
    delays = parts.settings.webhook_retry_delays
    verdict = sending.judge(answer, row.attempt, delays, most=row.max_attempts)
    return outcomes.of_attempt(row, parcel, answer, verdict)


async def bury_delivery(_parts: Parts, tx: Tx, row: WorkRow, error: str) -> None:
    await deliveries.bury(tx, row.tenant_id or "", row.ref_id or "", error)
