"""Job functions: dispatch messages to their recipients, send them through channels, and digests.
Channels are a kind of endpoint.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from app.domain.job import Job
from app.domain.messaging.outbox.api import (
    Attempt,
    Fallback,
    Outbox,
    OutboxEgress,
    Outcome,
    Schedule,
)
from app.kit.ids import new_id
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import (
    delivery_queries,
    digests,
    dispatching,
    failover,
    mail_contents,
    rate_limits,
    sending,
)
from .feed import Feed
from .message_queries import RETRY_DELAYS
from .rate_limits import ChannelSend
from .sending import SendRequest

# The longest wait that a provider may ask for between two attempts.
MAX_RETRY_AFTER: Final = 600.0
_INACTIVE = Attempt(
    error="the channel is not active", error_code="channel_inactive", is_permanent=True
)
_NO_RECIPIENT = Attempt(
    error="the user is no longer active", error_code="recipient_inactive", is_cancelled=True
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


async def send_digest(job: Job) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        await digests.send(job.services, tx, job.tenant_id, job.ref_id)


class ChannelOutbox(Outbox[SendRequest]):
    span_kind = "notification"
    sql = delivery_queries.OUTBOX_SQL
    request_type = SendRequest

    async def load(self, tx: Tx, delivery_ids: list[str]) -> Mapping[str, SendRequest]:
        rows = await delivery_queries.load_pending(tx, delivery_ids)
        return {row["delivery_id"]: SendRequest(**row) for row in rows}

    def schedule(self, services: Services, work: WorkRow, request: SendRequest) -> Schedule:
        """Attempts that ended without an outcome, because a worker was killed, do not count."""
        del services
        max_attempts = 1 if request.is_test else work.max_attempts
        number, throttled_at = request.attempts + 1, request.throttled_at
        return Schedule(number, RETRY_DELAYS, max_attempts, MAX_RETRY_AFTER, throttled_at)

    async def count_send(self, services: Services, request: SendRequest) -> float | None:
        """A test was counted by the request that asks for it."""
        if request.is_test or not request.active:
            return None
        send = ChannelSend(request.endpoint_id, request.rate_per_minute)
        count = partial(rate_limits.count_sends, services.redis)
        return await services.batches.join("channel sends", send, count)

    async def on_postponed(self, tx: Tx, request: SendRequest, *, by_receiver: bool) -> None:
        ids = (request.tenant_id, request.delivery_id)
        number = request.attempts + 1
        await delivery_queries.mark_rate_limited(tx, *ids, number, by_provider=by_receiver)

    async def attempt(
        self, services: Services, request: SendRequest, *, is_awaited: bool
    ) -> Attempt:
        if not request.has_recipient:
            return _NO_RECIPIENT
        if not request.active and not is_awaited:
            return _INACTIVE
        content = None
        if request.channel_type == "email":
            content = mail_contents.render_common(request.title, request.message)
        return await sending.send(services.get(OutboxEgress), services.keyring, request, content)

    def columns(self, request: SendRequest, attempt: Attempt) -> dict[str, object]:
        del request
        return {"error_code": attempt.error_code, "next_log_id": new_id("ntl")}

    async def find_fallbacks(
        self, services: Services, tx: Tx, outcomes: Sequence[Outcome[SendRequest]]
    ) -> Mapping[str, Fallback]:
        failures = [(item.request, item.attempt.error_code) for item in outcomes]
        return await failover.find_fallbacks(services, tx, failures)


CHANNELS: Final = ChannelOutbox()
