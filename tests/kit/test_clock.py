"""The clock, and how tests freeze it."""

from datetime import UTC, datetime, timedelta

import pytest

from app.kit import clock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_clock_returns_utc() -> None:
    assert clock.now().tzinfo is UTC


def test_a_frozen_clock_stands_still() -> None:
    with clock.frozen(NOON):
        assert (clock.now(), clock.epoch()) == (NOON, NOON.timestamp())


def test_the_inner_of_two_frozen_clocks_wins() -> None:
    with clock.frozen(NOON), clock.frozen(NOON + timedelta(days=1)):
        assert clock.now() == NOON + timedelta(days=1)


def test_the_outer_frozen_clock_is_restored() -> None:
    with clock.frozen(NOON):
        with clock.frozen(NOON + timedelta(days=1)):
            pass
        assert clock.now() == NOON


def test_the_clock_goes_on_after_an_error() -> None:
    with pytest.raises(LookupError), clock.frozen(NOON):
        raise LookupError
    assert clock.now() != NOON
