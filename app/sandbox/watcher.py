"""Watches all runs of this process: their memory, their processor time, and the machine's memory.

One task polls while runs are going on. A run that takes more memory than it may is ended. When the
machine has too little memory left, the largest run is ended, and no new one starts until there is
room. A run that has used some processor time gets the lowest priority: a short one does not wait
for others, and a long one makes way for everything else.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from app.jobs import background
from app.kit import logs
from app.sandbox import machine_memory, usage
from app.sandbox.limits import MIB, Limits
from app.sandbox.program import Ending
from app.sandbox.usage import Usage

log = logs.get("sandbox")

_POLL_SECONDS = 0.05
_ROOM_POLL_SECONDS = 0.1
# Every few polls, mappings and locks are counted, which takes longer.
_DETAIL_POLLS = 4
# Above the floor, before a run starts: else it would be ended again at once.
_ROOM_BYTES = 64 * MIB
# Where the kernel divides the processor between sessions first, a thread's priority counts only
# within its session. Six runs that spin then leave the others as they were from 5 on; a run that
# needs a second would take twice as long from 10 on beside a busy model.
_THREAD_NICE = 19
_SESSION_NICE = 5


class NoRoom(Exception):
    """The machine had too little memory for another run until the time was up."""


class WatchedRun:
    """A run that is going on; `ending` is set when the watcher ends it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.started = time.monotonic()
        self.ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def end(self, ending: Ending) -> None:
        if not self.ending.done():
            self.ending.set_result(ending)


class Watcher:
    def __init__(
        self,
        limits: Limits,
        min_free_bytes: int,
        read_available: Callable[[], int] = machine_memory.available_bytes,
    ) -> None:
        self._limits = limits
        # 0 when runs go on however little memory is left.
        self.min_free_bytes = min_free_bytes
        self.read_available = read_available
        self._runs: set[WatchedRun] = set()
        self._task: asyncio.Task[None] | None = None
        # Reading /proc waits for a process that changes its mappings.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sandbox-watcher")

    @contextmanager
    def watch(self, pid: int) -> Iterator[WatchedRun]:
        run = WatchedRun(pid)
        self._runs.add(run)
        if (
            self._task is None
            or self._task.done()
            or self._task.get_loop() != run.ending.get_loop()
        ):
            self._task = background.spawn(self._poll_while_running())
        try:
            yield run
        finally:
            self._runs.discard(run)
            run.ending.cancel()

    async def wait_for_room(self, seconds: float) -> None:
        """Returns when the machine has room for a run. Raises NoRoom when the time is up."""
        if self._has_room():
            return
        log.warning("a run waits for memory of the machine", min_free_mb=self._min_free_mib)
        try:
            async with asyncio.timeout(seconds):
                while not self._has_room():  # noqa: ASYNC110  # nothing tells when memory is freed
                    await asyncio.sleep(_ROOM_POLL_SECONDS)
        except TimeoutError:
            raise NoRoom(
                f"the worker's machine had no memory for it within {seconds:g} s"
            ) from None

    @property
    def _min_free_mib(self) -> int:
        return self.min_free_bytes // MIB

    def _has_room(self) -> bool:
        return self._read_free() >= self.min_free_bytes + _ROOM_BYTES

    def _read_free(self) -> int:
        """Returns enough when there is no floor, or when the machine does not say."""
        if not self.min_free_bytes:
            return _ROOM_BYTES
        try:
            return self.read_available()
        except (OSError, ValueError) as error:
            log.warning("cannot read the memory of the machine", reason=str(error)[:200])
            return self.min_free_bytes + _ROOM_BYTES

    async def _poll_while_running(self) -> None:
        loop, polls = asyncio.get_running_loop(), 0
        while self._runs:
            await asyncio.sleep(_POLL_SECONDS)
            runs, polls = list(self._runs), polls + 1
            in_detail = polls % _DETAIL_POLLS == 0
            try:
                usages = await loop.run_in_executor(self._thread, self._inspect, runs, in_detail)
                free = await loop.run_in_executor(self._thread, self._read_free)
            except Exception as error:  # noqa: BLE001  # a machine without memory may fail anywhere
                log.warning("cannot measure the runs", reason=f"{type(error).__name__}: {error}")
                continue
            self._end_large_runs(usages)
            self._keep_free_memory(usages, free)

    def _inspect(self, runs: list[WatchedRun], in_detail: bool) -> dict[WatchedRun, Usage]:  # noqa: FBT001
        """Runs in a thread."""
        usages = {run: usage.measure(run.pid, self._limits, in_detail=in_detail) for run in runs}
        for run, used in usages.items():
            age = time.monotonic() - run.started
            if (
                used.cpu_seconds > self._limits.normal_cpu_seconds
                or age > self._limits.normal_seconds
            ):
                lower_priority(used)
        return usages

    def _end_large_runs(self, usages: dict[WatchedRun, Usage]) -> None:
        for run, used in usages.items():
            if used.memory > self._limits.total_bytes:
                run.end("memory")

    def _keep_free_memory(self, usages: dict[WatchedRun, Usage], free: int) -> None:
        """Ends one run at a time: its memory is free only when it has ended. A run that ended while
        `free` was read may have freed enough.
        """
        if free >= self.min_free_bytes or any(run.ending.done() for run in usages):
            return
        if usages:
            largest = max(usages, key=lambda run: usages[run].memory)
            log.warning(
                "the largest run is ended: the machine is short of memory",
                run_mb=usages[largest].memory // MIB,
                free_mb=free // MIB,
                min_free_mb=self._min_free_mib,
            )
            largest.end("machine_memory")


def lower_priority(used: Usage) -> None:
    """Gives the lowest priority to all threads of a run, and a lower one to its sessions. No call
    lets the run undo it.
    """
    for thread in used.threads:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, _THREAD_NICE)
    sessions: dict[int, int] = {}
    for pid in used.processes:
        with suppress(OSError):
            sessions.setdefault(os.getsid(pid), pid)
    for pid in sessions.values():
        # The kernel takes few changes per second of an ordinary user; the next poll repeats it.
        with suppress(OSError):
            group = Path(f"/proc/{pid}/autogroup")
            if not group.read_text(encoding="ascii").endswith(f" nice {_SESSION_NICE}\n"):
                group.write_text(str(_SESSION_NICE), encoding="ascii")
