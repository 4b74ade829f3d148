"""Measures what requests and jobs cost this process: the steps of its event loop, and memory.

Steps are measured in processor time of this thread, so that other processes of a busy machine do
not count.
"""

import asyncio
import ctypes
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_ROOT = str(Path(__file__).parents[2])
_SAMPLE_SECONDS = 0.005


class StepTimer:
    """Measures the longest step of each name. The name is the kind of work if a worker runs it, or
    else the function of the task.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @property
    def longest(self) -> tuple[str, float]:
        return max(self.seconds.items(), key=lambda item: item[1], default=("none", 0.0))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        run = asyncio.Handle._run

        def measure(handle: asyncio.Handle) -> None:
            name, started = _name_step(handle), time.thread_time()
            run(handle)
            seconds = time.thread_time() - started
            if seconds > self.seconds.get(name, 0.0):
                self.seconds[name] = seconds

        # A step each for what is done before and after.
        await asyncio.sleep(0)
        asyncio.Handle._run = measure  # type: ignore[method-assign, assignment]
        try:
            await asyncio.sleep(0)
            yield
            await asyncio.sleep(0)
        finally:
            asyncio.Handle._run = run  # type: ignore[method-assign]


def _name_step(handle: asyncio.Handle) -> str:
    task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    if not isinstance(task, asyncio.Task):
        return getattr(handle._callback, "__qualname__", "callback")  # type: ignore[attr-defined]
    coroutine: Any = task.get_coro()
    name: str = getattr(coroutine, "__qualname__", type(coroutine).__name__)
    if name == "Runner._run_consecutively" and coroutine.cr_frame is not None:
        return f"work {coroutine.cr_frame.f_locals['row'].kind}"
    return name


@contextmanager
def sampling(samples: Counter[str]) -> Iterator[None]:
    """Counts where this thread was, in a short time each: the function of this project, and the
    innermost one.
    """
    thread_id, stopped = threading.get_ident(), threading.Event()

    def sample() -> None:
        while not stopped.wait(_SAMPLE_SECONDS):
            frame = sys._current_frames()[thread_id]
            samples[_name_place(frame)] += 1

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _name_place(frame: FrameType) -> str:
    innermost, current = frame.f_code.co_qualname, frame
    while current.f_back is not None:
        path = current.f_code.co_filename
        if path.startswith(_ROOT) and "/.venv/" not in path and "/tests/" not in path:
            place = f"{path.removeprefix(_ROOT)[1:]}:{current.f_lineno} {current.f_code.co_name}"
            return f"{place} ({innermost})"
        current = current.f_back
    return innermost


# Memory


class MemoryPeak:
    """Measures by how much the resident memory of this process grows at its peak; 0 where the
    system does not say it.
    """

    def __init__(self) -> None:
        self.bytes = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        before = self._reset()
        yield
        self.bytes = max(0, _read_status("VmHWM") - before) if before else 0

    def _reset(self) -> int:
        if not _CLEAR_REFS.exists():
            return 0
        # What earlier requests have freed would hide what this one takes.
        ctypes.CDLL(None).malloc_trim(0)
        # Sets the peak to the current size.
        _CLEAR_REFS.write_text("5")
        return _read_status("VmRSS")


def _read_status(name: str) -> int:
    (line,) = [line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024
