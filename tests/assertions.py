"""Assertions on responses, and waiting for conditions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeVar

import httpx

T = TypeVar("T")


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Asserts an error response and returns its error, which has a message."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]
    # No words of libraries.
    assert "Expected `" not in answer.text
    assert "Invalid enum" not in answer.text
    return error


def logged_by(part: str, lines: Iterable[MutableMapping[str, Any]]) -> list[dict[str, Any]]:
    """The captured log lines of one part; an application in the same process logs, too."""
    return [dict(line) for line in lines if line.get("part") == part]


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Waits for a condition that another task, process or server brings about."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def wait_until(condition: Callable[[], Awaitable[T]], seconds: float = 70) -> T:
    """Like `until`, for a condition that must be awaited; returns its first true result.

    On a busy machine a wake-up may be lost; a worker then finds the work half a minute later.
    """
    async with asyncio.timeout(seconds):
        while not (result := await condition()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return result
