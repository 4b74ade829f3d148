"""Passwords: argon2id off the event loop, a bounded number at a time."""

import asyncio
import hashlib
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import Type, hash_secret_raw

from app.kit.errors import Unavailable

# OWASP's recommendation for argon2id: 19 MiB, two passes, one lane.
_hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="argon2")
MAX_LENGTH = 128
MIN_LENGTH = 8
_COMMON = 3_000
_QUEUE_LENGTH = 128
_queue: set[asyncio.Future[Any]] = set()
Result = TypeVar("Result")

# Verified when the e-mail is unknown, so that both cases do the same work.
_NOBODY = _hasher.hash("nobody has this password")


async def _in_turn(work: Callable[..., Result], *args: str) -> Result:
    """In a thread, after those who came before; a queue that is too long turns the caller away."""
    if len(_queue) >= _QUEUE_LENGTH:
        raise Unavailable("Too many people are signing in at this moment; try again", 2)
    task = asyncio.get_running_loop().run_in_executor(_threads, work, *args)
    _queue.add(task)
    task.add_done_callback(_queue.discard)
    return await task


async def hash_password(password: str) -> str:
    return await _in_turn(_hasher.hash, _composed(password))


async def verify_password(stored: str | None, password: str) -> bool:
    """False for a wrong password and, after the same work, for no user at all."""
    right = await _in_turn(_verify, stored or _NOBODY, password)
    return right and stored is not None


def _verify(stored: str, password: str) -> bool:
    try:
        return _hasher.verify(stored, _composed(password))
    except (VerificationError, InvalidHashError):
        return False


def same(one: str, other: str) -> bool:
    return _composed(one) == _composed(other)


def _composed(password: str) -> str:
    """Keyboards differ in how they write é; what a person typed is the same password."""
    return unicodedata.normalize("NFC", password)


def problem_with(password: str) -> str | None:
    """Every rule that a new password breaks, or None."""
    rules = (
        (len(password) >= MIN_LENGTH, f"at least {MIN_LENGTH} characters"),
        (len(password) <= MAX_LENGTH, f"at most {MAX_LENGTH} characters"),
        (any(c.isupper() for c in password), "an uppercase letter"),
        (any(c.islower() for c in password), "a lowercase letter"),
        (any(c.isdigit() for c in password), "a number"),
    )
    broken = [rule for holds, rule in rules if not holds]
    if broken:
        return f"must have {', '.join(broken)}"
    if password.lower() in _common():
        return "is one of the most common passwords; choose another"
    return None


@cache
def _common() -> frozenset[str]:
    # Loaded when somebody first chooses a password: no process needs the lists before.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS  # noqa: PLC0415

    return frozenset(FREQUENCY_LISTS["passwords"][:_COMMON])


async def code_hash(code: str, owner: str) -> str:
    """A recovery code's hash. The owner salts it, so one hash is compared with all ten; a code is
    random, so lighter work than a password's is plenty.
    """
    return await _in_turn(_code_hash, code, owner)


def _code_hash(code: str, owner: str) -> str:
    salt = hashlib.sha256(owner.encode()).digest()[:16]
    return hash_secret_raw(
        code.encode(), salt, time_cost=1, memory_cost=8 * 1024, parallelism=1, hash_len=32,
        type=Type.ID,
    ).hex()  # fmt: skip
