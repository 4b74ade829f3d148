"""Time-ordered ids: a prefix for the kind, and a UUIDv7 in Crockford's base 32.

Nobody can guess an id from others: some things are protected by theirs alone.
"""

import os
import struct
import threading
import time
from datetime import UTC, datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_LETTERS = 26
# Of the 74 random bits of a UUIDv7, those after the variant.
_LOW_BITS = 62
_LOW_MASK = (1 << _LOW_BITS) - 1
_RANDOM_BITS = 12 + _LOW_BITS
# Words of 64 bits from the system's generator, which `secrets` uses too: one call for many ids.
_WORDS = 512
_WORDS_PER_ID = 3
_unpack_words = struct.Struct(f"{_WORDS}Q").unpack
_lock = threading.Lock()
_last = 0
_words: list[int] = []


def _forget() -> None:
    """A forked process must not draw what its parent draws, and a thread may have had the lock."""
    global _lock  # noqa: PLW0603  # one per process
    _lock = threading.Lock()
    _words.clear()


os.register_at_fork(after_in_child=_forget)


def _next() -> int:
    """Returns milliseconds and random bits as one number, greater than all before it in this
    process. Within a millisecond, the difference of two numbers is random.
    """
    global _last  # noqa: PLW0603  # one per process
    now = time.time_ns() // 1_000_000 << _RANDOM_BITS
    with _lock:
        if len(_words) < _WORDS_PER_ID:
            _words.extend(_unpack_words(os.urandom(8 * _WORDS)))
        number = now | (_words.pop() & 0xFFF) << _LOW_BITS | _words.pop() >> 2
        if number <= _last:
            number = _last + 1 + (_words.pop() >> 2)
        _last = number
        return number


def uuid7() -> int:
    number = _next()
    millis, high = number >> _RANDOM_BITS, number >> _LOW_BITS & 0xFFF
    return millis << 80 | 0x7 << 76 | high << 64 | 0b10 << _LOW_BITS | number & _LOW_MASK


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
