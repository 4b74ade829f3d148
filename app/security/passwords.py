"""Passwords: argon2id off the event loop, a bounded number at a time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

# OWASP's recommendation for argon2id: 19 MiB, two passes, one lane.
_hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="argon2")
MAX_LENGTH = 128
MIN_LENGTH = 8

# Verified when the e-mail is unknown, so that both cases do the same work.
_NOBODY = _hasher.hash("nobody has this password")


async def hash_password(password: str) -> str:
    return await asyncio.get_running_loop().run_in_executor(_threads, _hasher.hash, password)


async def verify_password(stored: str | None, password: str) -> bool:
    """False for a wrong password and, after the same work, for no user at all."""
    right = await asyncio.get_running_loop().run_in_executor(
        _threads, _verify, stored or _NOBODY, password
    )
    return right and stored is not None


def _verify(stored: str, password: str) -> bool:
    try:
        return _hasher.verify(stored, password)
    except (VerificationError, InvalidHashError):
        return False


def problem_with(password: str) -> str | None:
    """What is wrong with a new password, or None."""
    rules = (
        (len(password) >= MIN_LENGTH, f"must have at least {MIN_LENGTH} characters"),
        (len(password) <= MAX_LENGTH, f"must have at most {MAX_LENGTH} characters"),
        (any(c.isupper() for c in password), "must have an uppercase letter"),
        (any(c.islower() for c in password), "must have a lowercase letter"),
        (any(c.isdigit() for c in password), "must have a number"),
    )
    return next((message for holds, message in rules if not holds), None)
