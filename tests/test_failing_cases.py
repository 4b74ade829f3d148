"""Which cases of a table pytest hears of."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tests.failing_cases import FailingCases


class _Reports:
    """Takes the place of pytest's `subtests`."""

    def __init__(self) -> None:
        self.failures: list[tuple[str | None, dict[str, object], str]] = []

    @contextmanager
    def test(self, msg: str | None = None, **values: object) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # noqa: BLE001  # as pytest's
            self.failures.append((msg, values, str(error)))


def _fail() -> None:
    pytest.fail("refused")


def test_each_case_that_fails_is_reported_and_the_others_run() -> None:
    reports, done = _Reports(), []
    cases = FailingCases(cast("Any", reports))
    for number in range(3):
        with cases.test("a number", number=number):
            done.append(number)
            if number == 1:
                raise ValueError("wrong")
    with cases.test(number=3):
        _fail()
    assert done == [0, 1, 2]
    assert reports.failures == [
        ("a number", {"number": 1}, "wrong"),
        (None, {"number": 3}, "refused"),
    ]
