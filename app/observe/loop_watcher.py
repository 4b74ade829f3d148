"""Watches the event loop of a process and logs what holds it: the request or job, and the stack."""

import asyncio
import inspect
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, Self

from app.kit import logs
from app.observe import metrics

log = logs.get("loop")

STALL_SECONDS: Final = 0.25
_BEAT_SECONDS: Final = 0.05
# A stall that goes on is logged after this time.
_MAX_WAIT_SECONDS: Final = 10.0
_LOG_EVERY_SECONDS: Final = 10.0
_MAX_FRAMES: Final = 15

# Returns what to log about a request or job, from the local variables of the function that runs it.
# The first item is its route or kind.
Describe = Callable[[Mapping[str, Any]], dict[str, str | None]]


class _Beat(NamedTuple):
    time: float
    # Of all threads.
    cpu_seconds: float

    @classmethod
    def now(cls) -> Self:
        return cls(time.monotonic(), time.process_time())


class _Sample(NamedTuple):
    """What the thread of the loop was doing, without values of variables."""

    # The last one before the stall.
    beat: _Beat
    subject: dict[str, str | None]
    frames: list[str]

    @property
    def name(self) -> str:
        return next(iter(self.subject.values())) or ""


class LoopWatcher:
    """A context manager for the time in which the current event loop is watched.

    The loop writes the time, and a thread reads it. `describers` has, by its code, each function
    on the stack that runs requests or jobs.
    """

    def __init__(self, describers: Mapping[CodeType, Describe]) -> None:
        self._describers = describers
        self._beat = _Beat.now()
        self._timer: asyncio.TimerHandle | None = None
        self._thread_id = 0
        self._stopped = threading.Event()
        # The beats before and after each stall that has ended.
        self._stalls: deque[tuple[_Beat, _Beat]] = deque()
        self._sample: _Sample | None = None
        # How long the watching thread itself was delayed since the loop was last found on time.
        self._own_delay = 0.0
        self._logged_at: dict[str, float] = {}
        self._unlogged: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._thread_id = threading.get_ident()
        self._beat = _Beat.now()
        self._write_beat(asyncio.get_running_loop())
        threading.Thread(target=self._watch, name="loop-watcher", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def _write_beat(self, loop: asyncio.AbstractEventLoop) -> None:
        last, self._beat = self._beat, _Beat.now()
        if self._beat.time - last.time >= STALL_SECONDS:
            self._stalls.append((last, self._beat))
        self._timer = loop.call_later(_BEAT_SECONDS, self._write_beat, loop)

    # In the thread

    def _watch(self) -> None:
        while not self._pause():
            try:
                self._check()
            except Exception as error:  # the next stall may be read
                log.warning("a stall of the event loop was not read", exc_info=error)

    def _pause(self) -> bool:
        """Returns True when the watcher is stopped."""
        started = time.monotonic()
        is_stopped = self._stopped.wait(_BEAT_SECONDS)
        self._own_delay += max(0.0, time.monotonic() - started - _BEAT_SECONDS)
        return is_stopped

    def _check(self) -> None:
        beat, now = self._beat, _Beat.now()
        while self._stalls:
            self._report(*self._stalls.popleft())
        held_seconds = now.time - beat.time
        if held_seconds < STALL_SECONDS:
            self._own_delay = 0.0
        elif self._sample is None or self._sample.beat is not beat:
            self._sample = self._take_sample(beat)
        elif held_seconds >= _MAX_WAIT_SECONDS and not self._was_logged(self._sample):
            self._log(self._sample, beat, now)

    def _report(self, last: _Beat, end: _Beat) -> None:
        seconds, cpu_seconds = end.time - last.time, end.cpu_seconds - last.cpu_seconds
        # Neither this thread nor a step of the loop ran.
        by_machine = self._own_delay > seconds / 2 and cpu_seconds < STALL_SECONDS / 2
        metrics.LOOP_STALLS.labels("machine" if by_machine else "process").inc()
        metrics.LOOP_STALL_SECONDS.inc(seconds)
        sample = self._sample
        if by_machine or sample is None or sample.beat is not last:
            return
        if self._was_logged(sample):
            self._unlogged[sample.name] = self._unlogged.get(sample.name, 0) + 1
        else:
            self._log(sample, last, end)

    def _was_logged(self, sample: _Sample) -> bool:
        """True if one of the same route or kind was logged a short time ago."""
        logged_at = self._logged_at.get(sample.name)
        return logged_at is not None and time.monotonic() - logged_at < _LOG_EVERY_SECONDS

    def _log(self, sample: _Sample, last: _Beat, end: _Beat) -> None:
        self._logged_at[sample.name] = time.monotonic()
        log.warning(
            "the event loop was held",
            **sample.subject,
            ms=round((end.time - last.time) * 1000),
            # Little of it means that the step waited, for example for a file or another thread.
            cpu_ms=round((end.cpu_seconds - last.cpu_seconds) * 1000),
            unlogged=self._unlogged.pop(sample.name, 0),
            frames=sample.frames,
        )

    def _take_sample(self, beat: _Beat) -> _Sample:
        frames: list[str] = []
        subject: dict[str, str | None] = {}
        task = "none"
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001  # no public name
        while frame is not None:
            if len(frames) < _MAX_FRAMES:
                frames.append(_name_frame(frame))
            if frame.f_code in self._describers:
                # The frame goes on meanwhile, so that a variable may be missing.
                with suppress(Exception):
                    subject = self._describers[frame.f_code](frame.f_locals)
            if frame.f_code.co_flags & inspect.CO_COROUTINE:
                task = frame.f_code.co_qualname
            frame = frame.f_back
        return _Sample(beat, subject or {"task": task}, frames)


def _name_frame(frame: FrameType) -> str:
    path = frame.f_code.co_filename.rpartition("site-packages/")[2]
    return f"{path}:{frame.f_lineno} {frame.f_code.co_qualname}"
