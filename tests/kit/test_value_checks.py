"""Checks of single values."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from app.kit import value_checks
from app.kit.errors import Invalid
from app.kit.validation import check_size, parse_time_field
from app.kit.value_checks import MAX_INTEGER, WrongValue

_DATE = "must be a date like 2026-01-31"
_TIME = "must be a time like 2026-01-31T09:30:00Z"
_WRONG: list[tuple[Callable[[Any], object], Any, str]] = [
    (value_checks.check_text, 7, "must be a string"),
    (value_checks.check_text, "\ud800", "must be valid Unicode"),
    (value_checks.check_boolean, 1, "must be true or false"),
    (value_checks.check_number, True, "must be a number"),
    (value_checks.check_number, "1", "must be a number"),
    (value_checks.parse_date, None, _DATE),
    (value_checks.parse_date, "2026-02-30", _DATE),
    (value_checks.parse_time, 7, _TIME),
    (value_checks.parse_time, "tomorrow", _TIME),
    (value_checks.parse_time, "0001-01-01T00:00:00+10:00", _TIME),
]


def test_a_wrong_value_is_refused_with_what_it_must_be(subtests: pytest.Subtests) -> None:
    for check, value, message in _WRONG:
        with subtests.test(check=check.__name__, value=ascii(value)):
            with pytest.raises(WrongValue) as error:
                check(value)
            assert str(error.value) == message


def test_whole_numbers_are_integers_as_far_as_they_are_exact() -> None:
    simplified = [value_checks.simplify_number(number) for number in (3.0, -0.0, 0.5, 2.0**60)]
    assert list(map(repr, simplified)) == ["3", "0", "0.5", repr(2.0**60)]
    assert value_checks.simplify_number(float(MAX_INTEGER)) == MAX_INTEGER


def test_times_are_in_utc_and_shown_with_milliseconds_where_they_have_any() -> None:
    assert value_checks.parse_date("2026-01-31") == date(2026, 1, 31)
    time = value_checks.parse_time("2026-01-31T09:30:00+02:00")
    assert time == datetime(2026, 1, 31, 7, 30, tzinfo=UTC)
    assert value_checks.parse_time("2026-01-31T07:30") == time
    assert value_checks.format_time(time) == "2026-01-31T07:30:00Z"
    assert value_checks.format_time(time.replace(microsecond=5000)) == "2026-01-31T07:30:00.005Z"


def test_a_moment_that_is_none_is_named() -> None:
    with pytest.raises(Invalid) as error:
        parse_time_field("until", "soon")
    assert error.value.details == {"until": "must be an ISO 8601 date or date and time"}


def test_a_value_that_is_too_large_as_json_is_named() -> None:
    check_size("data", {"a": ["x" * 1000]}, 3, 2048)
    for value, problem in (
        ([[[[]]]], "is nested too deeply"),
        (_nest(600), "is nested too deeply"),
        (["x" * 2048], "must be at most 2 KiB"),
    ):
        with pytest.raises(Invalid) as error:
            check_size("data", value, 3, 2048)
        assert error.value.details == {"data": problem}
    # It may be too deep to be encoded; where that begins depends on the Python.
    with pytest.raises(Invalid):
        check_size("data", _nest(100_000), 3, 2048)


def _nest(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value
