"""Long computations on the event loop, with turns for other tasks in between."""

import asyncio
import time

# A fifth of what one step may take.
_TURN_SECONDS = 0.02


class Pace:
    """Measures the processor time of one turn. After each part of the computation, call `rest`."""

    def __init__(self) -> None:
        self._started = time.thread_time()

    @property
    def is_over(self) -> bool:
        """True when other tasks should have a turn."""
        return time.thread_time() - self._started >= _TURN_SECONDS

    async def rest(self) -> None:
        """Lets other tasks run if this turn is over."""
        if self.is_over:
            await asyncio.sleep(0)
            self._started = time.thread_time()
