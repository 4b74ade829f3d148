"""Tests run on uvloop, as the processes do."""

import asyncio
import warnings

import uvloop


def use_uvloop() -> None:
    """Sets the policy, which pytest-asyncio and `asyncio.run` ask for their loops.

    The plugin's hook for loops is a parameter of every asynchronous test: it would move them before
    the other tests of their modules, whose servers would then start twice.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
