"""Running user code. Fail-closed: where no tier passes its test, nothing runs."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from app.kit import logs
from app.kit.sandbox import bubblewrap, landlock, runtimes, seccomp
from app.kit.sandbox.limits import Limits
from app.kit.sandbox.runtimes import Runtimes
from app.settings import Settings

log = logs.get("sandbox")

Tier = Literal["bubblewrap", "landlock", "none"]
Language = Literal["python", "node", "bash"]
Ending = Literal["exited", "timeout", "output", "memory"]

_WATCH_SECONDS = 0.05
_STALE_SECONDS = 3600
_TEST_SECONDS = 10.0
_LANGUAGES: Final[tuple[Language, ...]] = ("python", "node", "bash")
# Users that no Debian package and nobody else has; one for each run of the weaker tier.
_UIDS = range(65000, 65500)
_SCOPED_SIGNALS = 6


class SandboxUnavailable(Exception):
    """There is no cage on this machine that user code could run in."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Code to run: files by name, and which of them is where to begin.

    `apart`: what the code has to say leaves by descriptor 3, and what it prints is its log.
    """

    language: Language
    files: Mapping[str, str]
    entry: str
    arguments: tuple[str, ...] = ()
    apart: bool = False


class Ran(msgspec.Struct, frozen=True):
    ending: Ending
    exit_code: int
    output: bytes
    log: bytes


class Sandbox:
    """One per process; `start` finds the tier."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.sandbox_home
        self._runtimes: Runtimes | None = None
        self._uids = count()
        self.limits = Limits()
        self.tier: Tier = "none"

    async def start(self, allowed: tuple[Tier, ...] = ("bubblewrap", "landlock")) -> Tier:
        """Try the tiers, the strongest first; the first that keeps a prisoner is used."""
        self.tier = "none"
        try:
            self._runtimes = await asyncio.to_thread(runtimes.prepare, self._folder)
            await asyncio.to_thread(self._tidy)
        except OSError as error:
            log.warning("no runtimes for user code", reason=str(error)[:200])
            return self.tier
        for tier in allowed:
            self.tier = tier
            problem = await self._tested()
            if problem is None:
                return tier
            log.info("sandbox tier not usable", tier=tier, reason=problem)
        self.tier = "none"
        return self.tier

    @property
    def languages(self) -> tuple[Language, ...]:
        if self._runtimes is None or self._runtimes.has_node:
            return _LANGUAGES
        return ("python", "bash")

    async def _tested(self) -> str | None:
        """What is wrong with the present tier, found by locking somebody in."""
        canary = self._folder / "runs" / "canary"
        canary.write_text("seen", encoding="ascii")
        canary.chmod(0o644)
        code = _PRISONER.replace("CANARY", repr(str(canary)))
        program = Program(language="python", files={"main.py": code}, entry="main.py")
        try:
            ran = await self.run(program, b"x" * 16, _TEST_SECONDS)
        except (SandboxUnavailable, OSError, seccomp.NoFilter) as error:
            return str(error) or type(error).__name__
        finally:
            canary.unlink(missing_ok=True)
        if ran.ending != "exited" or ran.output.strip() != b"[]":
            return (ran.output + ran.log).decode(errors="replace").strip()[-300:] or ran.ending
        return None

    def _tidy(self) -> None:
        """What a killed worker left behind."""
        runs = self._folder / "runs"
        runs.mkdir(exist_ok=True)
        runs.chmod(0o711)
        with os.scandir(runs) as entries:
            for entry in entries:
                with suppress(OSError):
                    age = runs.stat().st_mtime - entry.stat().st_mtime
                    if entry.is_dir(follow_symlinks=False) and age > _STALE_SECONDS:
                        shutil.rmtree(entry.path, ignore_errors=True)

    async def run(
        self,
        program: Program,
        given: bytes,
        timeout_seconds: float,
        environment: Mapping[str, str] | None = None,
    ) -> Ran:
        if self.tier == "none" or self._runtimes is None:
            raise SandboxUnavailable("this worker has no sandbox; see `parley doctor`")
        if program.language not in self.languages:
            raise SandboxUnavailable(f"this worker has no {program.language}")
        uid = self._uid()
        folder = await asyncio.to_thread(self._written, program, uid)
        try:
            async with self._started(program, folder, uid, timeout_seconds, environment or {}) as (
                process
            ):
                return await _Watch(process, self.limits, program).until_over(
                    given, timeout_seconds
                )
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, True)  # noqa: FBT003

    def _uid(self) -> int:
        """The user to become; 0 where we are nobody special ourselves."""
        if os.geteuid() != 0:
            return 0
        if self.tier == "bubblewrap":
            return bubblewrap.UID
        return _UIDS[next(self._uids) % len(_UIDS)]

    def _written(self, program: Program, uid: int) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self._folder / "runs"))
        try:
            for name, text in program.files.items():
                (folder / name).write_text(text, encoding="utf-8", errors="replace")
                (folder / name).chmod(0o400)
                if uid:
                    os.chown(folder / name, uid, uid)
            folder.chmod(0o500)
            if uid:
                os.chown(folder, uid, uid)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    @asynccontextmanager
    async def _started(
        self,
        program: Program,
        folder: Path,
        uid: int,
        timeout_seconds: float,
        more: Mapping[str, str],
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        cpu = int(timeout_seconds) + 2
        spawn: dict[str, Any] = {
            "stdin": asyncio.subprocess.PIPE,
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
            "env": {},
            "cwd": "/",
            "start_new_session": True,
        }
        if self.tier == "bubblewrap":
            command, descriptor = self._in_bubblewrap(program, folder, cpu, more)
            command = [*(bubblewrap.as_nobody() if uid else []), *command]
        else:
            command, descriptor = self._in_landlock(program, folder, uid, cpu, more), None
            # The launcher still is who we are, and knows as little as what follows it.
            home = str(self._runtimes.python) if self._runtimes else ""
            spawn["env"] = {"PYTHONHOME": home, "LD_LIBRARY_PATH": f"{home}/lib"}
        try:
            process = await asyncio.create_subprocess_exec(
                *command, pass_fds=() if descriptor is None else (descriptor,), **spawn
            )
        finally:
            if descriptor is not None:
                os.close(descriptor)
        try:
            yield process
        finally:
            _end(process)
            await process.wait()

    def _in_bubblewrap(
        self, program: Program, folder: Path, cpu: int, more: Mapping[str, str]
    ) -> tuple[list[str], int]:
        found = bubblewrap.find()
        if found is None or self._runtimes is None:
            raise SandboxUnavailable("bubblewrap is not installed")
        places = bubblewrap.places()
        environment = _environment(places) | dict(more)
        filter_ = seccomp.program(may_leave_group=True)
        descriptor = os.memfd_create("seccomp", 0)
        os.write(descriptor, filter_)
        os.lseek(descriptor, 0, os.SEEK_SET)
        outer = bubblewrap.command(found, self._runtimes, folder, descriptor, environment)
        inner = bubblewrap.entered(
            _interpreter(program, places), self.limits, cpu, apart=program.apart
        )
        return [*outer, "--", *inner], descriptor

    def _in_landlock(
        self, program: Program, folder: Path, uid: int, cpu: int, more: Mapping[str, str]
    ) -> list[str]:
        known = landlock.version()
        if not known or self._runtimes is None:
            raise SandboxUnavailable("this kernel has no Landlock")
        if not uid and known < _SCOPED_SIGNALS:
            # As the same user, nothing would keep code from signalling us.
            raise SandboxUnavailable("this kernel's Landlock does not scope signals")
        places = {
            "python": str(self._runtimes.python),
            "node": str(self._runtimes.node / "node"),
            "packages": str(self._runtimes.packages),
            "code": str(folder),
            "home": str(folder),
        }
        limits = self.limits
        orders = {
            "uid": uid,
            "limits": {
                "RLIMIT_CORE": 0,
                "RLIMIT_NPROC": limits.processes + (0 if uid else _own_processes()),
                "RLIMIT_DATA": limits.process_bytes,
                "RLIMIT_FSIZE": 0,
                "RLIMIT_NOFILE": limits.open_files,
                "RLIMIT_CPU": cpu,
            },
            "readable": [
                *("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"),
                *(places["packages"], str(self._runtimes.home), places["code"]),
            ],
            "devices": ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"],
            "seccomp": seccomp.program(may_leave_group=False).hex(),
            "apart": program.apart,
            "code": places["code"],
            "command": _interpreter(program, places),
            "environment": _environment(places) | dict(more),
        }
        python = str(self._runtimes.python / "bin" / "python3")
        script = str(Path(landlock.__file__))
        return [python, "-s", "-S", "-B", script, msgspec.json.encode(orders).decode()]


def _interpreter(program: Program, places: Mapping[str, str]) -> list[str]:
    file = f"{places['code']}/{program.entry}"
    match program.language:
        case "python":
            python = f"{places['python']}/bin/python3"
            return [python, "-s", "-S", "-B", "-X", "utf8", file, *program.arguments]
        case "node":
            heap = "--max-old-space-size=256"
            return [places["node"], heap, "--no-warnings", file, *program.arguments]
        case "bash":
            return ["/usr/bin/bash", "--noprofile", "--norc", file, *program.arguments]


def _environment(places: Mapping[str, str]) -> dict[str, str]:
    return {
        "PATH": f"/usr/bin:/bin:{places['python']}/bin:{os.path.dirname(places['node'])}",  # noqa: PTH120
        "HOME": places["home"],
        "LANG": "C.UTF-8",
        # Node looks for this in /etc, where it may not.
        "OPENSSL_CONF": "/dev/null",
        "LD_LIBRARY_PATH": f"{places['python']}/lib",
        "PYTHONHOME": places["python"],
        "PYTHONPATH": places["packages"],
    }


def _own_processes() -> int:
    """How many processes and threads we, as this user, have already: the limit counts them all."""
    mine, found = os.geteuid(), 0
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if process.stat().st_uid == mine:
                    found += sum(1 for _ in (process / "task").iterdir())
    return found


def _end(process: asyncio.subprocess.Process) -> None:
    """Whatever is left of the run: its group, and with bubblewrap its whole world."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        process.kill()


class _TooMuch(Exception):
    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


class _Watch:
    """Feeds a run, listens to it and ends it when it takes too much of anything."""

    def __init__(
        self, process: asyncio.subprocess.Process, limits: Limits, program: Program
    ) -> None:
        self._process = process
        self._limits = limits
        self._program = program
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
                await self._process.wait()
                # Whoever it left behind may still hold the pipes; they end with it.
                _end(self._process)
                await asyncio.wait(reading)
                watching.cancel()
        except TimeoutError:
            ending = "timeout"
        except ExceptionGroup as group:
            too_much = group.subgroup(_TooMuch)
            if too_much is None:
                raise
            ending = next(error.ending for error in _flat(too_much))
        _end(self._process)
        code = await self._process.wait()
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
            if _weight(self._process.pid) > self._limits.total_bytes:
                raise _TooMuch("memory")


def _flat(group: BaseExceptionGroup[_TooMuch]) -> list[_TooMuch]:
    found: list[_TooMuch] = []
    for error in group.exceptions:
        found += _flat(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _weight(pid: int) -> int:
    """Resident bytes of a process and all that it started."""
    page, total, left = os.sysconf("SC_PAGE_SIZE"), 0, [pid]
    while left:
        one = left.pop()
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()
            total += int(fields[1]) * page
            for thread in Path(f"/proc/{one}/task").iterdir():
                left += map(int, (thread / "children").read_text(encoding="ascii").split())
    return total


# What a prisoner could do that none may: it says so, and the tier is not used.
_PRISONER = """
import json, os, resource, socket, sys
could = []
sys.stdin.read()
try:
    open(CANARY).read(); could.append("read a file of the machine")
except OSError:
    pass
for kind in (socket.AF_INET, socket.AF_UNIX):
    try:
        socket.socket(kind); could.append(f"open a socket of kind {kind}")
    except OSError:
        pass
for place in ("/parley", "/usr/parley", "/code/parley", "/var/tmp/parley"):
    try:
        open(place, "w"); could.append(f"write to {place}")
    except OSError:
        pass
if os.getuid() == 0:
    could.append("be root")
try:
    os.setuid(0); could.append("become root")
except OSError:
    pass
if resource.getrlimit(resource.RLIMIT_NPROC)[1] == resource.RLIM_INFINITY:
    could.append("start any number of processes")
try:
    os.listdir("/proc"); could.append("see processes")
except OSError:
    pass
try:
    os.kill(os.getppid(), 0)
    if os.getppid() > 1:
        could.append("signal whoever started it")
except OSError:
    pass
known = {"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PWD", "SHLVL",
         "_", "OLDPWD", "LC_CTYPE", "OPENSSL_CONF"}
if set(os.environ) - known:
    could.append("see the environment: " + " ".join(set(os.environ) - known))
print(json.dumps(could))
"""
