"""Password rules, and argon2id hashing in threads with a bounded queue."""

import asyncio
import hashlib
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION, Type, hash_secret_raw

from app.kit.errors import Unavailable
from db.connection_use import check_wait

# OWASP's recommendation for argon2id: 19 MiB, two passes, one lane.
_PASSES, _KIBIBYTES, _LANES = 2, 19 * 1024, 1
_hasher = PasswordHasher(_PASSES, _KIBIBYTES, _LANES)
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="argon2")
MAX_LENGTH = 128
MIN_LENGTH = 8
_COMMON_PASSWORD_COUNT = 3_000
_MAX_QUEUE_LENGTH = 128
_CODE_MEMORY_KIB = 8 * 1024
_queue: set[asyncio.Future[Any]] = set()
Result = TypeVar("Result")

# Verified when the e-mail is unknown, so that both cases take the same time. It is the hash of no
# known password, and hashing one here would delay the start.
_DUMMY_HASH = (
    f"$argon2id$v={ARGON2_VERSION}$m={_KIBIBYTES},t={_PASSES},p={_LANES}${'A' * 22}${'A' * 43}"
)


async def _run_in_thread(work: Callable[..., Result], *args: str) -> Result:
    """Runs `work` in the hashing threads. Raises Unavailable when the queue is full."""
    check_wait("a hashing thread")
    if len(_queue) >= _MAX_QUEUE_LENGTH:
        raise Unavailable("Too many sign-ins at this moment; try again", 2)
    task = asyncio.get_running_loop().run_in_executor(_threads, work, *args)
    _queue.add(task)
    task.add_done_callback(_queue.discard)
    return await task


async def hash_password(password: str) -> str:
    return await _run_in_thread(_hasher.hash, _normalize(password))


async def verify_password(stored_hash: str | None, password: str) -> bool:
    """False for a wrong password and, after the same work, for a missing hash."""
    is_correct = await _run_in_thread(_verify, stored_hash or _DUMMY_HASH, password)
    return is_correct and stored_hash is not None


def _verify(stored_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(stored_hash, _normalize(password))
    except (VerificationError, InvalidHashError):
        return False


def are_equal(password: str, other: str) -> bool:
    return _normalize(password) == _normalize(other)


def _normalize(password: str) -> str:
    """Keyboards encode é differently; NFC makes the same input the same password."""
    return unicodedata.normalize("NFC", password)


def find_problem(password: str) -> str | None:
    """Returns a message with every rule that a new password breaks, or None."""
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
    if password.lower() in _load_common_passwords():
        return "is one of the most common passwords; choose another"
    return None


@cache
def _load_common_passwords() -> frozenset[str]:
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(FREQUENCY_LISTS["passwords"][:_COMMON_PASSWORD_COUNT])


async def hash_code(code: str, owner: str) -> str:
    """Hashes a recovery code. The owner is the salt, so one hash is compared with all ten codes. A
    code is random, so a lower cost than a password's is enough.
    """
    return await _run_in_thread(_hash_code, code, owner)


def _hash_code(code: str, owner: str) -> str:
    salt = hashlib.sha256(owner.encode()).digest()[:16]
    return hash_secret_raw(
        code.encode(), salt, time_cost=1, memory_cost=_CODE_MEMORY_KIB, parallelism=1, hash_len=32,
        type=Type.ID,
    ).hex()  # fmt: skip
