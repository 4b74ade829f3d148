"""Ids are unique, sorted by time and safe to read."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from app.kit import clock, ids
from tests.lengths import rounds


def test_an_id_is_its_prefix_and_26_characters() -> None:
    prefix, _, rest = ids.new_id("usr").partition("_")
    assert (prefix, len(rest)) == ("usr", 26)


def test_an_id_has_only_characters_that_are_hard_to_confuse() -> None:
    characters = set("".join(ids.new_id("x")[2:] for _ in range(1_000)))
    assert characters <= set("0123456789abcdefghjkmnpqrstvwxyz")


def test_many_ids_differ_and_sort_by_their_creation() -> None:
    count = rounds(20_000, 100_000)
    new_ids = [ids.new_id("x") for _ in range(count)]
    assert new_ids == sorted(new_ids)
    assert len(set(new_ids)) == count


def test_no_two_ids_of_several_threads_are_the_same() -> None:
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: [ids.new_id("x") for _ in range(2_000)], range(8)))
    assert len({new_id for batch in batches for new_id in batch}) == 16_000


def test_random_bits_come_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of `random` can be computed from earlier ids."""
    monkeypatch.setattr(ids, "_words", [], raising=False)
    monkeypatch.setattr(os, "urandom", bytes)
    # The first one of a new millisecond.
    assert any(_random_bits(ids.uuid7()) & (1 << 62) - 1 == 0 for _ in range(100_000))


def test_ids_of_a_millisecond_cannot_be_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns() + 10**9
    monkeypatch.setattr(ids, "_last", ids._last)
    monkeypatch.setattr(time, "time_ns", lambda: now)
    numbers = [_random_bits(ids.uuid7()) for _ in range(500)]
    differences = {second - first for first, second in pairwise(numbers)}
    assert min(differences) > 2**40
    assert len({difference >> 52 for difference in differences}) > 100


def _random_bits(number: int) -> int:
    """Returns the milliseconds and the random bits as one number."""
    millis, high, low = number >> 80, number >> 64 & 0xFFF, number & (1 << 62) - 1
    return millis << 74 | high << 62 | low


def test_a_forked_process_creates_different_ids() -> None:
    code = (
        "import os; from app.kit import ids; ids.new_id('x'); child = os.fork();"
        "os.write(1, (ids.new_id('x')[-12:] + '\\n').encode()); child and os.wait()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert len(set(result.stdout.split())) == 2


def test_a_uuid_says_its_version_and_variant() -> None:
    number = ids.uuid7()
    assert (number >> 76 & 0xF, number >> 62 & 0b11) == (7, 0b10)


def test_a_uuid_starts_with_the_time() -> None:
    before = clock.epoch()
    millis = ids.uuid7() >> 80
    # The counter below the milliseconds may have run a little ahead of the clock.
    assert before * 1000 - 1 <= millis <= clock.epoch() * 1000 + 1_000


def test_an_id_contains_its_time_of_creation() -> None:
    before = ids.moment_of(ids.new_id("evt"))
    after = ids.moment_of(ids.new_id("evt"))
    assert before is not None
    assert after is not None
    assert before <= after


def test_an_invalid_id_has_no_time() -> None:
    assert ids.moment_of("evt_short") is None
    assert ids.moment_of("evt_" + "u" * 26) is None
