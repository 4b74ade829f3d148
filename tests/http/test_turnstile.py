"""Requests that wait for somebody outside, a few of a tenant at a time."""

from contextlib import AsyncExitStack

import pytest

from app.http.errors import RateLimited
from app.http.turnstile import Turnstile


async def test_one_too_many_of_a_tenant_is_turned_away() -> None:
    gate = Turnstile(2)
    async with gate.one_of("a"), gate.one_of("a"):
        with pytest.raises(RateLimited):
            async with gate.one_of("a"):
                pass


async def test_other_tenants_are_not_in_its_way() -> None:
    gate = Turnstile(1)
    async with AsyncExitStack() as inside:
        await inside.enter_async_context(gate.one_of("a"))
        await inside.enter_async_context(gate.one_of("b"))


async def test_whoever_leaves_makes_room_also_after_an_error() -> None:
    gate = Turnstile(1)
    with pytest.raises(ValueError, match="outside"):
        async with gate.one_of("a"):
            raise ValueError("outside")
    async with gate.one_of("a"):
        pass
