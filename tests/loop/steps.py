"""Measures what requests and jobs cost this process: the steps of its event loop, and memory.

Steps are measured in processor time of this thread, so that other processes of a busy machine do
not count.
"""

import asyncio
import ctypes
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, TypeVar

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_ROOT = str(Path(__file__).parents[2])
_SAMPLE_SECONDS = 0.005
_BEAT_SECONDS = 0.004
_MAX_SECONDS = 0.1
# What the fixed piece of work takes on the machine that the limits are meant for.
_USUAL_SECONDS = 0.04

Result = TypeVar("Result")


class StepTimer:
    """Measures the longest step of each name. The name is the kind of work if a worker runs it, or
    else the function of the task; `callbacks` are what the loop runs between steps of tasks, such
    as protocols. Only tasks that were created within `watched_tasks` are measured.
    """

    current: ClassVar["StepTimer | None"] = None

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._in_tasks = 0.0

    @property
    def longest(self) -> tuple[str, float]:
        return max(self.seconds.items(), key=lambda item: item[1], default=("none", 0.0))

    def add(self, name: str, seconds: float) -> None:
        self._in_tasks += seconds
        self._keep(name, seconds)

    def _keep(self, name: str, seconds: float) -> None:
        if seconds > self.seconds.get(name, 0.0):
            self.seconds[name] = seconds

    async def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Runs a coroutine as a task, while this timer measures all of them."""
        watch = asyncio.create_task(self._watch_callbacks())
        StepTimer.current = self
        try:
            return await asyncio.create_task(coroutine)
        finally:
            StepTimer.current = None
            watch.cancel()

    async def _watch_callbacks(self) -> None:
        while True:
            started, in_tasks = time.thread_time(), self._in_tasks
            await asyncio.sleep(_BEAT_SECONDS)
            self._keep("callbacks", time.thread_time() - started - (self._in_tasks - in_tasks))


def is_short(seconds: float) -> bool:
    """True for a step that does not hold others up, on a machine of the usual speed. Call it right
    after the step.
    """
    return seconds <= _MAX_SECONDS or seconds <= _MAX_SECONDS * _measure_slowness()


def _measure_slowness() -> float:
    """Returns how many times its usual time a fixed piece of work takes now."""
    started = time.thread_time()
    for _ in range(100):
        rows = [{"id": number, "texts": [[], str(number)]} for number in range(200)]
        json.loads(json.dumps(rows))
    return (time.thread_time() - started) / _USUAL_SECONDS


class _TimedCoroutine(Coroutine[Any, Any, Any]):
    """Passes everything on to a coroutine, and its steps to the timer."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.coroutine = coroutine

    def send(self, value: Any) -> Any:
        return self._step(self.coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self.coroutine.throw, *error)

    def close(self) -> None:
        self.coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.coroutine.__await__()

    def _step(self, function: Callable[..., Any], *arguments: Any) -> Any:
        timer = StepTimer.current
        if timer is None:
            return function(*arguments)
        name, started = _name_step(self.coroutine), time.thread_time()
        try:
            return function(*arguments)
        finally:
            timer.add(name, time.thread_time() - started)


@contextmanager
def watched_tasks() -> Iterator[None]:
    """The steps of tasks that are created meanwhile can be measured."""
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    loop.set_task_factory(_create_timed_task)
    try:
        yield
    finally:
        loop.set_task_factory(factory)


def _create_timed_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
) -> asyncio.Task[Any]:
    return asyncio.Task(_TimedCoroutine(coroutine), loop=loop, **options)


def _name_step(coroutine: Any) -> str:
    name: str = getattr(coroutine, "__qualname__", type(coroutine).__name__)
    frame = getattr(coroutine, "cr_frame", None)
    if name == "Runner._run_consecutively" and frame is not None:
        return f"work {frame.f_locals['row'].kind}"
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
