"""What is renewed until it is stopped."""

import asyncio

from app.jobs.renewal import Renewal
from tests.assertions import until


async def test_it_renews_again_and_again_even_after_an_error() -> None:
    calls = 0

    async def renew() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("the database is away")

    renewal = Renewal(0.001, renew)
    await until(lambda: calls >= 4)
    renewal.stop()
    stopped_at = calls
    await asyncio.sleep(0.02)
    assert calls == stopped_at
