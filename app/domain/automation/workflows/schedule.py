"""Schedules: when cron starts a workflow next, and the task that starts those that are due."""

import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import partial

from cronsim import CronSim, CronSimError

from app.domain.platform.storage.errors import QuotaExceeded
from app.kit import clock, logs, trace
from app.kit.errors import ApiError, Invalid
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.services import Services
from db import fast
from db.fast import Row
from db.session import ALL_TENANTS, Tx

from . import queries, starting
from .errors import TooManyPendingExecutions
from .schemas import Schedule

log = logs.get("workflows")

_BATCH = 50
_FIELDS = 5
# A schedule of a tenant with too many pending executions tries again after this time.
_RETRY_DELAY = timedelta(minutes=1)


def check(schedule: Schedule) -> None:
    zone = _find_zone(schedule.timezone)
    if zone is None:
        raise Invalid.field("trigger.timezone", "is not an IANA time zone, like Europe/London")
    if len(schedule.cron.split()) != _FIELDS:
        raise Invalid.field("trigger.cron", "needs five fields: minute hour day month weekday")
    try:
        next_run = next(CronSim(schedule.cron, datetime.now(zone)), None)
    except CronSimError as error:
        raise Invalid.field("trigger.cron", str(error)[:200]) from None
    if next_run is None:
        raise Invalid.field("trigger.cron", "names a time that never comes")


def find_next(schedule: Schedule, after: datetime) -> datetime | None:
    """Returns the first minute of the schedule after a time. Around a change of daylight saving
    time a job runs once, as with Debian's cron.
    """
    zone = _find_zone(schedule.timezone) or zoneinfo.ZoneInfo("UTC")
    moment = next(CronSim(schedule.cron, after.astimezone(zone)), None)
    return moment.astimezone(UTC) if moment is not None else None


def _find_zone(name: str) -> zoneinfo.ZoneInfo | None:
    if name in {"localtime", "posixrules", "Factory"}:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


async def start_due(services: Services) -> bool:
    """Starts the workflows that are due, each in a transaction of its own. Returns True when more
    may be due.
    """
    for _ in range(_BATCH):
        async with services.db.tx(ALL_TENANTS) as tx:
            if not await _start_one(tx, services):
                return False
    return True


async def _start_one(tx: Tx, services: Services) -> bool:
    """Rows that another worker has locked are skipped, and the next time is set in the transaction
    that accepts the execution: each time starts a workflow once. False when none is due. A schedule
    that cannot start waits for its next time, so that it does not hold up the others; one whose
    tenant has too many pending executions or stores too much tries again before that.
    """
    row = await queries.lock_due(tx)
    if row is None:
        return False
    due_at, now = row["next_run_at"], clock.now()
    # From now on, not from the time that was due: minutes that were missed run once.
    next_run = find_next(Schedule(**row["trigger"]), max(now, due_at))
    await queries.set_next_run(tx, row["tenant_id"], row["id"], next_run)
    warn = partial(log.warning, "a schedule did not start", workflow_id=row["id"])
    try:
        async with (await tx.session()).begin_nested():
            await _start(tx, services, row, due_at, now)
    except (TooManyPendingExecutions, QuotaExceeded) as error:
        warn(reason=error.message)
        retry_at = now + _RETRY_DELAY
        next_run = min(next_run, retry_at) if next_run else retry_at
        await queries.set_next_run(tx, row["tenant_id"], row["id"], next_run)
    except ApiError as error:
        warn(reason=error.message)
    except Exception as error:
        if not fast.was_refused(error):
            raise
        log.exception("a schedule did not start", workflow_id=row["id"])
    return True


async def _start(tx: Tx, services: Services, row: Row, due_at: datetime, now: datetime) -> None:
    trace.begin(Trace(new_id("cor"), tenant_id=row["tenant_id"]))
    delay = now - due_at
    if delay > timedelta(minutes=1):
        log.info(
            "a schedule runs late", workflow_id=row["id"], seconds=round(delay.total_seconds())
        )
    await starting.accept(
        tx,
        services,
        starting.NewExecution(
            tenant_id=row["tenant_id"],
            workflow_id=row["id"],
            input={"scheduled_at": due_at.isoformat()},
            trigger_type="schedule",
            trigger_id=row["id"],
            dedupe_key=f"{row['id']}:{due_at.isoformat()}",
        ),
    )
