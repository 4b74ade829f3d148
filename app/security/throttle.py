"""Throttling of guesses: after too many failures under a rule, each attempt must wait longer.

Failures are rows in Postgres, so that they outlive Redis and are shared by all web processes. An
attempt is recorded when its outcome is known, under a lock on the count: of fifty concurrent
guesses only the first few get a result, and the others get 429, correct or not.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from app.kit import clock
from app.kit.errors import RateLimited
from db.session import Tx

MINUTE, DAY = 60, 86400


class Rule(msgspec.Struct, frozen=True):
    """From failure number `limit` within `window_seconds` on, each failure blocks for the next of
    `waits`, in seconds.
    """

    name: str
    limit: int
    window_seconds: int
    waits: tuple[int, ...]
    cleared_by_success: bool = False


_GROWING_WAITS = (15, 30, 60, 120, 240, 480, 900)

SIGN_IN = Rule("sign_in", 5, DAY, _GROWING_WAITS, cleared_by_success=True)
SIGN_IN_ADDRESS = Rule("sign_in_address", 50, 15 * MINUTE, (15 * MINUTE,))
CODE = Rule("code", 5, DAY, _GROWING_WAITS, cleared_by_success=True)
CODE_ADDRESS = Rule("code_address", 50, 15 * MINUTE, (15 * MINUTE,))
PASSWORD = Rule("password", 5, DAY, _GROWING_WAITS, cleared_by_success=True)
MAIL = Rule("mail", 5, 15 * MINUTE, (15 * MINUTE,))
CONFIRMATION = Rule("confirmation", 50, DAY, (60 * MINUTE,))


class Subject(msgspec.Struct, frozen=True):
    """An account or a network address whose failures a rule counts."""

    rule: Rule
    name: str

    @property
    def id(self) -> str:
        return hashlib.sha256(msgspec.json.encode([self.rule.name, self.name])).hexdigest()


class FailureCount(msgspec.Struct, frozen=True):
    failures: int
    since: datetime
    blocked_until: datetime | None = None

    def wait_seconds(self, now: datetime) -> int:
        """Returns the whole seconds left to wait."""
        if self.blocked_until is None or self.blocked_until <= now:
            return 0
        return math.ceil((self.blocked_until - now).total_seconds())


def add_failure(rule: Rule, count: FailureCount, now: datetime) -> FailureCount:
    is_expired = now - count.since >= timedelta(seconds=rule.window_seconds)
    failures, since = (1, now) if is_expired else (count.failures + 1, count.since)
    excess = failures - rule.limit
    if excess < 0:
        return FailureCount(failures, since)
    wait = rule.waits[min(excess, len(rule.waits) - 1)]
    return FailureCount(failures, since, now + timedelta(seconds=wait))


class AttemptResult(msgspec.Struct, frozen=True):
    """`starts_block` is true for a failure that starts a wait. With a `problem` nothing was
    recorded, and the caller raises it.
    """

    passed: bool = False
    starts_block: bool = False
    problem: RateLimited | None = None


async def refuse_blocked(tx: Tx, subjects: Sequence[Subject]) -> None:
    """Raises RateLimited for a subject that must wait. Called before any costly work."""
    problem = _find_block(subjects, await _read(tx, subjects, _READ), clock.now())
    if problem is not None:
        raise problem


async def record_attempt(tx: Tx, subjects: Sequence[Subject], *, succeeded: bool) -> AttemptResult:
    """Counts a failure, or clears the failures on success; neither while a subject must wait."""
    now = clock.now()
    sql, args = (_LOCK, ()) if succeeded else (_LOCK_OR_INSERT, (now,))
    counts = await _read(tx, subjects, sql, *args)
    problem = _find_block(subjects, counts, now)
    if problem is not None:
        return AttemptResult(problem=problem)
    if succeeded:
        # Only the locked rows: a row inserted since then belongs to another attempt.
        await clear_failures(
            tx, [s for s in subjects if s.rule.cleared_by_success and s.id in counts]
        )
        return AttemptResult(passed=True)
    new_counts = {
        subject.id: add_failure(subject.rule, counts[subject.id], now) for subject in subjects
    }
    await _store(tx, new_counts)
    return AttemptResult(starts_block=new_counts[subjects[0].id].wait_seconds(now) > 0)


async def clear_failures(tx: Tx, subjects: Iterable[Subject]) -> None:
    ids = [subject.id for subject in subjects]
    await (await tx.raw()).execute("DELETE FROM attempts WHERE id = ANY($1)", ids)


def _find_block(
    subjects: Sequence[Subject], counts: dict[str, FailureCount], now: datetime
) -> RateLimited | None:
    waits = [(counts[s.id].wait_seconds(now), s.rule) for s in subjects if s.id in counts]
    seconds, rule = max(waits, key=lambda pair: pair[0], default=(0, None))
    if not seconds or rule is None:
        return None
    return RateLimited(
        f"Too many failed attempts. Try again in {seconds} seconds",
        details={
            "limit": rule.limit,
            "window": rule.window_seconds,
            "retry_after": seconds,
        },
        headers={"Retry-After": str(seconds)},
    )


# Rows are locked in the order of their ids, so that two attempts cannot deadlock.
_READ = """
SELECT id, failures, since, blocked_until FROM attempts WHERE id = ANY($1) ORDER BY id
"""
_LOCK = _READ + " FOR UPDATE"
_LOCK_OR_INSERT = """
INSERT INTO attempts AS a (id, since) SELECT id, $2 FROM unnest($1::text[]) AS id ORDER BY id
ON CONFLICT (id) DO UPDATE SET failures = a.failures
RETURNING id, failures, since, blocked_until
"""
_STORE = "UPDATE attempts SET failures = $2, since = $3, blocked_until = $4 WHERE id = $1"


async def _read(
    tx: Tx, subjects: Sequence[Subject], sql: str, *args: object
) -> dict[str, FailureCount]:
    rows = await (await tx.raw()).fetch(sql, [subject.id for subject in subjects], *args)
    return {
        row["id"]: FailureCount(row["failures"], row["since"], row["blocked_until"]) for row in rows
    }


async def _store(tx: Tx, counts: dict[str, FailureCount]) -> None:
    await (await tx.raw()).executemany(
        _STORE,
        [(key, count.failures, count.since, count.blocked_until) for key, count in counts.items()],
    )
