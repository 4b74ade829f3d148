"""Job functions: dispatch messages to their recipients, send them through channels, and digests."""

import asyncio
from functools import partial

from app.domain.job import Job, LeaseLost
from app.domain.messaging.notifications import (
    delivery_queries,
    digests,
    dispatching,
    outcomes,
    rate_limits,
    sending,
)
from app.domain.messaging.notifications.feed import Feed
from app.domain.messaging.notifications.rate_limits import ChannelSend
from app.domain.messaging.notifications.sending import Attempt, ChannelEgress, SendRequest
from app.services import Services
from db import ledger
from db.ledger import WorkRow
from db.session import Tx

# Outcomes of attempts that end within this time are written together.
_BATCH_SECONDS = 0.003
_INACTIVE = Attempt(None, "the channel is not active", "channel_inactive", is_permanent=True)
_NO_RECIPIENT = Attempt(
    None, "the user is not active any more", "recipient_inactive", is_permanent=True
)


async def dispatch_message(job: Job) -> None:
    """In batches of users, each in a transaction of its own that also records how far it came: a
    run that was interrupted continues there.
    """
    feed = job.services.get(Feed)
    while True:
        async with job.checkpoint() as tx:
            batch = await dispatching.dispatch_batch(job.services, tx, job.tenant_id, job.ref_id)
        await feed.announce(batch.notified)
        if not batch.has_more:
            return


async def send_notification(job: Job) -> None:
    """Makes one attempt. Its outcome is written in one statement with others of the same moment."""
    services, request = job.services, job.payload
    if not isinstance(request, SendRequest):
        async with job.read() as tx:
            request = (await sending.load(tx, [job.ref_id])).get(job.ref_id)
    if request is None:
        # Deleted with its channel, or sent already.
        return
    wait = await _count_send(services, request)
    if wait is not None:
        await _postpone(job, request, wait)
        return
    attempt = await _attempt(services, request)
    wait = sending.throttled_seconds(attempt, request)
    if wait is not None:
        await _postpone(job, request, wait, by_provider=True)
        return
    step = sending.next_step(attempt, request.attempt + 1, is_test=request.is_test)
    outcome = outcomes.build_outcome(job.row, request, attempt, step)
    await asyncio.sleep(_BATCH_SECONDS)
    record = partial(outcomes.record, services)
    state = await services.batches.join("notification outcomes", outcome, record)
    state = state or await outcomes.record_alone(services, outcome)
    if state is None:
        raise LeaseLost(job.row.id)
    job.outcome = "retried" if state == "pending" else state
    if request.is_test:
        await services.doorbell.announce_done(job.row.id)


async def _count_send(services: Services, request: SendRequest) -> float | None:
    """Returns the seconds to wait for the limit of the channel. A test was counted by the request
    that asks for it.
    """
    if request.is_test or not request.active:
        return None
    send = ChannelSend(request.channel_id, request.rate_per_minute)
    count = partial(rate_limits.count_sends, services.redis)
    return await services.batches.join("channel sends", send, count)


async def _postpone(
    job: Job, request: SendRequest, seconds: float, *, by_provider: bool = False
) -> None:
    """Waits for the limit of the channel or of its provider; this attempt does not count."""
    job.pause_lane(seconds)
    async with job.checkpoint() as tx:
        number = request.attempt + 1
        await delivery_queries.mark_rate_limited(
            tx, request.tenant_id, request.id, number, by_provider=by_provider
        )
        await ledger.retry(
            await tx.raw(), job.row, after_seconds=seconds, error="rate_limited", uncounted=True
        )
    job.outcome = "postponed"


async def _attempt(services: Services, request: SendRequest) -> Attempt:
    if not request.has_recipient:
        return _NO_RECIPIENT
    if not request.active and not request.is_test:
        return _INACTIVE
    return await sending.send(services.get(ChannelEgress), services.keyring, request)


async def send_digest(job: Job) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        await digests.send(job.services, tx, job.tenant_id, job.ref_id)


async def on_dead_notification(_services: Services, tx: Tx, row: WorkRow, error: str) -> None:
    await delivery_queries.fail(tx, row.tenant_id or "", row.ref_id or "", error)
