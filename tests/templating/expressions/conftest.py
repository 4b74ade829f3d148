"""Fixtures of the tests of expressions."""

from collections.abc import AsyncIterator

import pytest

from app.templating.expressions import Expressions, process
from tests.assertions import until


@pytest.fixture(scope="session")
async def expressions() -> AsyncIterator[Expressions]:
    """For tests that end no process."""
    instance = Expressions(seconds=5)
    yield instance
    await instance.close()


@pytest.fixture(scope="session")
async def _ended_expressions() -> AsyncIterator[Expressions]:
    instance = Expressions()
    yield instance
    await instance.close()


@pytest.fixture
async def own_expressions(
    _ended_expressions: Expressions, monkeypatch: pytest.MonkeyPatch
) -> Expressions:
    """For tests that end processes or change their seconds. At the beginning all processes are
    idle, and no group is slow.
    """
    # A process that starts while the seconds are few may serve the next test.
    monkeypatch.setattr(process, "_OWN_DEADLINE_FACTOR", 1_000_000)
    pool = _ended_expressions._pool
    pool._seconds = 1.0
    pool._slow_until.clear()
    pool._start_processes()
    await until(lambda: len(pool._idle) == pool._size, 30)
    return _ended_expressions
