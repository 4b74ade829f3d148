"""The loop that tests run on."""

import asyncio

import pytest

from tests.event_loop import use_uvloop


def test_a_time_limit_ends_a_test_that_waits() -> None:
    use_uvloop()
    cleaned_up = []

    def reach_limit() -> None:
        pytest.fail("the time limit", pytrace=False)

    async def wait() -> None:
        asyncio.get_running_loop().call_soon(reach_limit)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.append(True)

    with pytest.raises(pytest.fail.Exception, match="the time limit") as failure:
        asyncio.run(asyncio.wait_for(wait(), 5))
    assert isinstance(failure.value.__cause__, asyncio.CancelledError)
    assert cleaned_up == [True]


def test_a_cancelled_task_is_no_time_limit() -> None:
    async def cancel() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
