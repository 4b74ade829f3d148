"""Shares of the connections: a third for a tenant while another one waits, two thirds otherwise."""

import asyncio
from typing import Any

import pytest
from sqlalchemy.exc import TimeoutError as PoolTimeout

from db.connection_shares import ConnectionShares


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class _Holders:
    """Transactions that acquire connections and keep them."""

    def __init__(self, shares: ConnectionShares) -> None:
        self._shares = shares
        self.tasks: list[tuple[str | None, asyncio.Task[Any]]] = []

    async def add(self, tenant: str | None, count: int = 1) -> None:
        for _ in range(count):
            self.tasks.append((tenant, asyncio.create_task(self._shares.acquire(tenant))))
        await _settle()

    def count(self, tenant: str | None) -> int:
        """Returns how many connections the tenant has."""
        return sum(
            owner == tenant and task.done() and not task.cancelled() for owner, task in self.tasks
        )

    async def release(self, tenant: str | None) -> None:
        index = next(i for i, (owner, task) in enumerate(self.tasks) if owner == tenant)
        _, task = self.tasks.pop(index)
        await task
        self._shares.release(tenant)
        await _settle()

    async def close(self) -> None:
        for _, task in self.tasks:
            task.cancel()
        await _settle()


async def test_a_tenant_leaves_a_third_to_others() -> None:
    holders = _Holders(ConnectionShares(9))
    await holders.add("a", 20)
    assert holders.count("a") == 6
    await holders.add("b", 2)
    assert holders.count("b") == 2
    await holders.close()


async def test_a_tenant_falls_to_a_third_while_another_one_waits() -> None:
    holders = _Holders(ConnectionShares(9))
    await holders.add("a", 20)
    await holders.add("b", 20)
    assert (holders.count("a"), holders.count("b")) == (6, 3)
    for _ in range(3):
        await holders.release("a")
    assert (holders.count("a"), holders.count("b")) == (3, 3)
    await holders.add("c", 20)
    assert holders.count("c") == 3
    await holders.close()


async def test_the_system_has_no_share_of_its_own() -> None:
    holders = _Holders(ConnectionShares(9))
    await holders.add("a", 20)
    await holders.add(None, 5)
    assert (holders.count("a"), holders.count(None)) == (6, 3)
    await holders.release("a")
    assert holders.count(None) == 4
    await holders.close()


async def test_every_size_lets_one_tenant_in(subtests: pytest.Subtests) -> None:
    for size in (1, 2, 3):
        with subtests.test(size=size):
            holders = _Holders(ConnectionShares(size))
            await holders.add("a", 3)
            assert holders.count("a") >= 1
            await holders.release("a")
            assert holders.count("a") >= 1
            await holders.close()


async def test_one_that_was_cancelled_takes_nothing() -> None:
    shares = ConnectionShares(1)
    await shares.acquire("a")
    waiting = [asyncio.create_task(shares.acquire("b")) for _ in range(3)]
    await _settle()
    waiting[0].cancel()
    shares.release("a")
    # Granted at this moment, and cancelled before it runs.
    waiting[1].cancel()
    await asyncio.wait(waiting, timeout=5)
    assert [task.cancelled() for task in waiting] == [True, True, False]
    shares.release("b")
    await asyncio.wait_for(shares.acquire("c"), 5)


async def test_whoever_waits_too_long_is_told() -> None:
    shares = ConnectionShares(1, wait_seconds=0.01)
    await shares.acquire("a")
    with pytest.raises(PoolTimeout):
        await shares.acquire("b")
    shares.release("a")
    await shares.acquire("b")
