"""The limit of concurrent outbound requests per tenant."""

from contextlib import AsyncExitStack

import pytest

from app.kit.concurrency import ConcurrencyLimit
from app.kit.errors import RateLimited


async def test_a_request_over_the_limit_of_a_tenant_is_refused() -> None:
    limit = ConcurrencyLimit(2)
    async with limit.hold("a"), limit.hold("a"):
        with pytest.raises(RateLimited):
            async with limit.hold("a"):
                pass


async def test_tenants_have_separate_limits() -> None:
    limit = ConcurrencyLimit(1)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(limit.hold("a"))
        await stack.enter_async_context(limit.hold("b"))


async def test_a_slot_is_released_after_an_error() -> None:
    limit = ConcurrencyLimit(1)
    with pytest.raises(ValueError, match="outside"):
        async with limit.hold("a"):
            raise ValueError("outside")
    async with limit.hold("a"):
        pass
