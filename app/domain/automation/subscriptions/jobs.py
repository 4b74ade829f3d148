"""Job functions: fan out events and run the actions of subscriptions."""

from functools import partial

from app.domain.automation.workflows.errors import TooManyPendingExecutions
from app.domain.job import GiveUp, Job, Retry
from app.domain.messaging.deliveries.api import DELIVER
from app.domain.platform.storage.errors import QuotaExceeded
from app.kit.errors import Unavailable

from .errors import CannotRunAction
from .fan_out import fan_out
from .run_action import load_action, render_action, run_action


async def fan_out_event(job: Job) -> None:
    async with job.finish() as tx:
        reserve = partial(job.reserve, DELIVER)
        job.follow_up = await fan_out(job.services, tx, job.tenant_id, job.ref_id, reserve)


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
