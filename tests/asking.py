"""What most tests ask of an answer, or of the world."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error, which says what happened in words as well."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]
    return error


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """For what another task, process or server brings about without a signal of its own."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
