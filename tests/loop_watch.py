"""Measures how long single steps hold the event loop."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LoopWatch:
    """`longest` is the longest step in seconds of the loop's own processor time, which does not
    depend on what else runs on the machine.
    """

    longest = 0.0

    async def run(self) -> None:
        while True:
            start = time.thread_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.thread_time() - start)


@asynccontextmanager
async def watch_loop() -> AsyncIterator[LoopWatch]:
    watch = LoopWatch()
    task = asyncio.create_task(watch.run())
    await asyncio.sleep(0)
    try:
        yield watch
        # The step before this one may have been the longest.
        await asyncio.sleep(0.002)
    finally:
        task.cancel()
