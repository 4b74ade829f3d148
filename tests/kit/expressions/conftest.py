"""Fixtures of the tests of expressions."""

from collections.abc import AsyncIterator

import pytest

from app.kit.expressions import Expressions


@pytest.fixture(scope="session")
async def expressions() -> AsyncIterator[Expressions]:
    """For tests that end no process."""
    instance = Expressions(seconds=5)
    yield instance
    await instance.close()


@pytest.fixture
async def own_expressions() -> AsyncIterator[Expressions]:
    """For tests that end processes."""
    instance = Expressions()
    yield instance
    await instance.close()
