"""Reports the cases of a table that fail, one by one."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class FailingCases:
    """pytest's `subtests`, called only for cases that fail: a report of each of 17,000 cases that
    pass takes longer than most of the cases do.
    """

    def __init__(self, subtests: pytest.Subtests) -> None:
        self._subtests = subtests

    @contextmanager
    def test(self, msg: str | None = None, **values: object) -> Iterator[None]:
        try:
            yield
        except BaseException:  # pytest ends a test by exceptions of this kind, too
            with self._subtests.test(msg, **values):
                raise
