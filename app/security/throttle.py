"""Guessing costs time: whoever fails too often under a rule waits, longer each time.

Failures are rows, so that neither a flushed Redis nor another web process forgets them. An attempt
is judged when its outcome is known, under a lock on the count: of fifty guesses sent at once only
the first few are judged at all, and the others learn nothing, right or wrong.
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
    """`free` failures within `window` seconds of the first; then each costs the next of `waits`."""

    name: str
    free: int
    window: int
    waits: tuple[int, ...]
    cleared_by_success: bool = False


_GROWING = (15, 30, 60, 120, 240, 480, 900)

SIGN_IN = Rule("sign_in", 5, DAY, _GROWING, cleared_by_success=True)
SIGN_IN_ADDRESS = Rule("sign_in_address", 50, 15 * MINUTE, (15 * MINUTE,))
CODE = Rule("code", 5, DAY, _GROWING, cleared_by_success=True)
CODE_ADDRESS = Rule("code_address", 50, 15 * MINUTE, (15 * MINUTE,))
PASSWORD = Rule("password", 5, DAY, _GROWING, cleared_by_success=True)
MAIL = Rule("mail", 5, 15 * MINUTE, (15 * MINUTE,))


class Subject(msgspec.Struct, frozen=True):
    """Who is counted under a rule: an account or an address."""

    rule: Rule
    name: str

    @property
    def id(self) -> str:
        return hashlib.sha256(msgspec.json.encode([self.rule.name, self.name])).hexdigest()


class Count(msgspec.Struct, frozen=True):
    failures: int
    since: datetime
    blocked_until: datetime | None = None

    def wait(self, now: datetime) -> int:
        """Whole seconds left to wait."""
        if self.blocked_until is None or self.blocked_until <= now:
            return 0
        return math.ceil((self.blocked_until - now).total_seconds())


def after_failure(rule: Rule, count: Count, now: datetime) -> Count:
    fresh = now - count.since >= timedelta(seconds=rule.window)
    failures, since = (1, now) if fresh else (count.failures + 1, count.since)
    beyond = failures - rule.free
    if beyond < 0:
        return Count(failures, since)
    wait = rule.waits[min(beyond, len(rule.waits) - 1)]
    return Count(failures, since, now + timedelta(seconds=wait))


class Judgement(msgspec.Struct, frozen=True):
    """`tripped` is set by the failure that starts a wait. With a `problem` nothing was judged or
    counted; it is for the caller to raise.
    """

    passed: bool = False
    tripped: bool = False
    problem: RateLimited | None = None


async def refuse_blocked(tx: Tx, subjects: Sequence[Subject]) -> None:
    """Before any costly work: 429 for who must still wait."""
    problem = _problem(subjects, await _read(tx, subjects, _READ), clock.now())
    if problem is not None:
        raise problem


async def judge(tx: Tx, subjects: Sequence[Subject], *, right: bool) -> Judgement:
    """Count a failure, or let a success clear its account; neither while one must wait."""
    now = clock.now()
    counts = await (_read(tx, subjects, _LOCK) if right else _read(tx, subjects, _BEGIN, now))
    problem = _problem(subjects, counts, now)
    if problem is not None:
        return Judgement(problem=problem)
    if right:
        # Only what is locked here: a count that began since is somebody else's to change.
        await forget(tx, [s for s in subjects if s.rule.cleared_by_success and s.id in counts])
        return Judgement(passed=True)
    after = {
        subject.id: after_failure(subject.rule, counts[subject.id], now) for subject in subjects
    }
    await _store(tx, after)
    return Judgement(tripped=after[subjects[0].id].wait(now) > 0)


async def forget(tx: Tx, subjects: Iterable[Subject]) -> None:
    ids = [subject.id for subject in subjects]
    await (await tx.raw()).execute("DELETE FROM attempts WHERE id = ANY($1)", ids)


def _problem(
    subjects: Sequence[Subject], counts: dict[str, Count], now: datetime
) -> RateLimited | None:
    waits = [(counts[item.id].wait(now), item.rule) for item in subjects if item.id in counts]
    seconds, rule = max(waits, key=lambda pair: pair[0], default=(0, None))
    if not seconds or rule is None:
        return None
    return RateLimited(
        f"Too many failed attempts. Try again in {seconds} seconds",
        details={"limit": rule.free, "window": rule.window, "retry_after": seconds},
        headers={"Retry-After": str(seconds)},
    )


# Rows are locked in the order of their ids, so that two attempts never wait for each other.
_READ = """
SELECT id, failures, since, blocked_until FROM attempts WHERE id = ANY($1) ORDER BY id
"""
_LOCK = _READ + " FOR UPDATE"
_BEGIN = """
INSERT INTO attempts AS a (id, since) SELECT id, $2 FROM unnest($1::text[]) AS id ORDER BY id
ON CONFLICT (id) DO UPDATE SET failures = a.failures
RETURNING id, failures, since, blocked_until
"""
_STORE = "UPDATE attempts SET failures = $2, since = $3, blocked_until = $4 WHERE id = $1"


async def _read(tx: Tx, subjects: Sequence[Subject], sql: str, *more: object) -> dict[str, Count]:
    rows = await (await tx.raw()).fetch(sql, [subject.id for subject in subjects], *more)
    return {row["id"]: Count(row["failures"], row["since"], row["blocked_until"]) for row in rows}


async def _store(tx: Tx, counts: dict[str, Count]) -> None:
    await (await tx.raw()).executemany(
        _STORE,
        [(key, count.failures, count.since, count.blocked_until) for key, count in counts.items()],
    )
