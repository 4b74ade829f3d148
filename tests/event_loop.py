"""Tests run on uvloop, as the processes do."""

import asyncio
import warnings
from asyncio import Future
from typing import Any

import pytest
import uvloop


class _Loop(uvloop.Loop):
    """Ends a test at its time limit, also while it waits.

    uvloop reports what a signal handler raises and goes on, so that the limit alone would end
    nothing.
    """

    _waited_for: Future[Any] | None = None
    _limit: BaseException | None = None

    def run_until_complete(self, future: Any) -> Any:
        self._waited_for, self._limit = asyncio.ensure_future(future, loop=self), None
        try:
            return super().run_until_complete(self._waited_for)
        except asyncio.CancelledError as error:
            if self._limit is None:
                raise
            raise self._limit from error

    def call_exception_handler(self, context: Any) -> None:
        error = context.get("exception")
        if isinstance(error, pytest.fail.Exception) and self._waited_for is not None:
            self._limit = error
            self._waited_for.cancel()
        else:
            super().call_exception_handler(context)


class _Policy(uvloop.EventLoopPolicy):  # type: ignore[misc]
    def _loop_factory(self) -> _Loop:
        return _Loop()


def use_uvloop() -> None:
    """Sets the policy, which pytest-asyncio and `asyncio.run` ask for their loops.

    The plugin's hook for loops is a parameter of every asynchronous test: it would move them before
    the other tests of their modules, whose servers would then start twice.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.set_event_loop_policy(_Policy())
