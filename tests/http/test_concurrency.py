"""Requests that wait for somebody outside, a few of a tenant at a time."""

from contextlib import AsyncExitStack

import pytest

from app.kit.concurrency import ConcurrencyLimit
from app.kit.errors import RateLimited


async def test_one_too_many_of_a_tenant_is_turned_away() -> None:
    gate = ConcurrencyLimit(2)
    async with gate.hold("a"), gate.hold("a"):
        with pytest.raises(RateLimited):
            async with gate.hold("a"):
                pass


async def test_other_tenants_are_not_in_its_way() -> None:
    gate = ConcurrencyLimit(1)
    async with AsyncExitStack() as inside:
        await inside.enter_async_context(gate.hold("a"))
        await inside.enter_async_context(gate.hold("b"))


async def test_whoever_leaves_makes_room_also_after_an_error() -> None:
    gate = ConcurrencyLimit(1)
    with pytest.raises(ValueError, match="outside"):
        async with gate.hold("a"):
            raise ValueError("outside")
    async with gate.hold("a"):
        pass
