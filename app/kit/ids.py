"""Time-ordered ids: a prefix for the kind, and a UUIDv7 in Crockford's base 32."""

import os
import random
import threading
import time
from datetime import UTC, datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_COUNTER_BITS = 12
_LETTERS = 26
_lock = threading.Lock()
_last = 0
# Ids must be unique, not secret; secrets come from the `secrets` module.
_random = random.Random()  # noqa: S311
os.register_at_fork(after_in_child=_random.seed)


def _ticks() -> int:
    """Returns milliseconds and a counter as one number that rises with every call."""
    global _last  # noqa: PLW0603  # one counter per process
    now = (time.time_ns() // 1_000_000) << _COUNTER_BITS
    with _lock:
        _last = now if now > _last else _last + 1
        return _last


def uuid7() -> int:
    ticks = _ticks()
    millis, counter = ticks >> _COUNTER_BITS, ticks & 0xFFF
    return millis << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | _random.getrandbits(62)


def new_id(prefix: str) -> str:
    number = uuid7()
    pairs = [_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)]
    return f"{prefix}_{''.join(pairs)}"


def moment_of(id_: str) -> datetime | None:
    """Returns the creation time of an id to the millisecond; None for text that is no id."""
    letters = id_.rpartition("_")[2]
    if len(letters) != _LETTERS or any(letter not in _ALPHABET for letter in letters):
        return None
    number = 0
    for letter in letters:
        number = number << 5 | _ALPHABET.index(letter)
    return datetime.fromtimestamp((number >> 80) / 1000, UTC)
