"""Watching a run: fed, listened to, weighed, and ended when it takes too much of anything."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from app.kit.sandbox.limits import Limits
from app.kit.sandbox.program import Ending, Ran

_WATCH_SECONDS = 0.05
# At most what the kernel keeps for a socket that nobody reads, and for an empty file.
_DESCRIPTOR_BYTES = 208 * 1024
_FEW_DESCRIPTORS = 24
_FILE_BYTES = 2048


def end_users_of(folder: str) -> None:
    """Whoever still runs from a folder that no live worker knows."""
    named = os.fsencode(folder)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with suppress(OSError):
                if named in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)


def end(process: asyncio.subprocess.Process) -> None:
    """Whatever is left of the run: its group, and with bubblewrap its whole world.

    Not `process.kill`: it would take the exit code away from whoever waits for it.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _exited(pid: int) -> None:
    """`Process.wait` would wait for everybody who holds the pipes."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def closed(process: asyncio.subprocess.Process) -> int:
    """The exit code of what was ended; what it still had to say is of no interest."""
    for pipe in (process.stdout, process.stderr):
        while pipe is not None and await pipe.read(65536):
            pass
    return await process.wait()


class _TooMuch(Exception):
    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


class Watch:
    """Feeds a run, listens to it and ends it when it takes too much of anything."""

    def __init__(self, process: asyncio.subprocess.Process, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._output = bytearray()
        self._log = bytearray()

    async def until_over(self, given: bytes, timeout_seconds: float) -> Ran:
        ending: Ending = "exited"
        try:
            async with asyncio.timeout(timeout_seconds), asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._weigh())
                tasks.create_task(self._feed(given))
                reading = [
                    tasks.create_task(self._listen()),
                    tasks.create_task(self._take_log()),
                ]
                await _exited(self._process.pid)
                # Whoever it left behind may still hold the pipes; they end with it.
                end(self._process)
                await asyncio.wait(reading)
                watching.cancel()
        except TimeoutError:
            ending = "timeout"
        except ExceptionGroup as group:
            too_much = group.subgroup(_TooMuch)
            if too_much is None:
                raise
            ending = next(error.ending for error in _flat(too_much))
        end(self._process)
        code = await closed(self._process)
        if ending == "exited" and code in {128 + signal.SIGXCPU, -signal.SIGXCPU}:
            ending = "timeout"
        return Ran(ending, code, bytes(self._output), bytes(self._log))

    async def _feed(self, given: bytes) -> None:
        pipe = self._process.stdin
        if pipe is None:
            return
        with suppress(ConnectionError):
            pipe.write(given)
            await pipe.drain()
        with suppress(ConnectionError):
            pipe.close()
            await pipe.wait_closed()

    async def _listen(self) -> None:
        pipe = self._process.stdout
        while pipe is not None and (chunk := await pipe.read(65536)):
            self._output += chunk
            if len(self._output) > self._limits.output_bytes:
                raise _TooMuch("output")

    async def _take_log(self) -> None:
        """Its beginning is kept; a flood is drained and forgotten."""
        pipe = self._process.stderr
        while pipe is not None and (chunk := await pipe.read(65536)):
            room = self._limits.log_bytes - len(self._log)
            self._log += chunk[: max(0, room)]

    async def _weigh(self) -> None:
        """All its processes together; no limit of the kernel counts them so."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if _weight(self._process.pid, self._limits) > self._limits.total_bytes:
                raise _TooMuch("memory")


def _flat(group: BaseExceptionGroup[_TooMuch]) -> list[_TooMuch]:
    found: list[_TooMuch] = []
    for error in group.exceptions:
        found += _flat(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _weight(pid: int, limits: Limits) -> int:
    """Bytes that a process and all that it started keep from others."""
    total, scratch, left = 0, 0, [pid]
    while left:
        one = left.pop()
        with suppress(OSError, ValueError, IndexError):
            process = Path(f"/proc/{one}")
            total += _memory(process) + _buffers(process, limits)
            scratch = scratch or _scratch(process, limits)
            for thread in (process / "task").iterdir():
                left += map(int, (thread / "children").read_text(encoding="ascii").split())
    return total + scratch


def _memory(process: Path) -> int:
    """What is resident, and the tables that say where: they can be larger than what they list."""
    kib = 0
    for line in (process / "status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("VmRSS:", "VmPTE:")):
            kib += int(line.split()[1])
    return kib * 1024


def _buffers(process: Path, limits: Limits) -> int:
    """What the kernel may hold for its pipes and sockets: it lies in no process."""
    try:
        count_ = sum(1 for _ in (process / "fd").iterdir())
    except PermissionError:
        count_ = limits.open_files
    return max(0, count_ - _FEW_DESCRIPTORS) * _DESCRIPTOR_BYTES


def _scratch(process: Path, limits: Limits) -> int:
    """What its /tmp takes, if it has one of its own; an empty file takes memory, too."""
    with suppress(OSError):
        about = os.statvfs(process / "root" / "tmp")
        if about.f_blocks * about.f_frsize == limits.scratch_bytes:
            used = (about.f_blocks - about.f_bfree) * about.f_frsize
            return used + (about.f_files - about.f_ffree) * _FILE_BYTES
    return 0
