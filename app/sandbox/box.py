"""Runs user code in the sandbox. When no tier passes its self-test, no code runs."""

import asyncio
import errno
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from app.jobs import background
from app.kit import logs
from app.sandbox import bubblewrap, landlock, runtimes, seccomp, self_test, supervisor
from app.sandbox.limits import MIB, Limits
from app.sandbox.program import Language, Program, RunResult
from app.sandbox.runtimes import Runtimes
from app.sandbox.supervisor import Supervisor
from app.sandbox.watcher import Watcher
from app.settings import Settings
from db.connection_use import check_wait

log = logs.get("sandbox")

Tier = Literal["bubblewrap", "landlock", "none"]

# How long a run waits for memory of the machine, in addition to its own time.
MAX_WAIT_SECONDS = 25.0
# Longer than any run takes.
_STALE_SECONDS = 900
_TEST_SECONDS = 10.0
_NODE_RESERVES: Final = 2048 * MIB
_LANGUAGES: Final[tuple[Language, ...]] = ("python", "node", "bash")
# User ids that neither Debian packages nor people have; each run of the Landlock tier gets one.
_UIDS = range(65000, 65500)
# The first version of Landlock that scopes signals.
_SCOPED_SIGNALS = 6
_LANDLOCK_READABLE = (
    *("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"),
    # Read-only: a writable mapping of /dev/zero is shared memory that no limit counts.
    *("/dev/zero", "/dev/urandom", "/dev/random"),
)


class SandboxUnavailable(Exception):
    """No sandbox on this machine can run the program."""


class Sandbox:
    """One per process; `start` selects the tier."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.sandbox_home
        self._runtimes: Runtimes | None = None
        # A random start per worker, so that few ids are tried.
        self._uids = count(secrets.randbelow(len(_UIDS)))
        self.limits = Limits()
        self.watcher = Watcher(self.limits, settings.sandbox_min_free_mb * MIB)
        self.tier: Tier = "none"

    async def start(self, allowed: tuple[Tier, ...] = ("bubblewrap", "landlock")) -> Tier:
        """Selects the first allowed tier that passes the self-test."""
        self.tier = "none"
        if sys.platform != "linux":
            log.info(
                "no sandbox for user code", reason=f"{sys.platform} has no tier; Linux has two"
            )
            return self.tier
        try:
            self._runtimes = await asyncio.to_thread(runtimes.prepare, self._folder)
            await self.clean_up()
        except OSError as error:
            log.warning("no runtimes for user code", reason=str(error)[:200])
            return self.tier
        for tier in allowed:
            self.tier = tier
            problem = await self._find_problem()
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

    async def _find_problem(self) -> str | None:
        """Runs the self-test in the current tier. Returns what it could do, None for nothing."""
        canary = self._folder / "runs" / f"canary-{os.getpid()}"
        canary.write_text("seen", encoding="ascii")
        canary.chmod(0o644)
        code = self_test.CODE.replace("CANARY", repr(str(canary)))
        program = Program(language="python", files={"main.py": code}, entry="main.py")
        try:
            result = await self._run(program, b"x" * 16, _TEST_SECONDS)
        except (SandboxUnavailable, OSError, seccomp.NoFilter) as error:
            return str(error) or type(error).__name__
        finally:
            canary.unlink(missing_ok=True)
        if result.ending != "exited" or result.output.strip() != b"[]":
            text = (result.output + result.log).decode(errors="replace").strip()
            return text[-300:] or result.ending
        return None

    async def clean_up(self) -> None:
        """Ends and removes runs that a killed worker left, once they are older than any run."""
        await asyncio.to_thread(self._clean_up)

    def _clean_up(self) -> None:
        runs = self._folder / "runs"
        runs.mkdir(exist_ok=True)
        runs.chmod(0o711)
        with os.scandir(runs) as entries:
            for entry in entries:
                with suppress(OSError):
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    if entry.is_dir(follow_symlinks=False) and age > _STALE_SECONDS:
                        supervisor.kill_processes_of(entry.path)
                        _remove(Path(entry.path))

    async def run(self, program: Program, content: bytes, timeout_seconds: float) -> RunResult:
        """Runs a program with `content` as its standard input. It waits for memory of the machine
        before its time starts, and raises NoRoom when it has waited as long as it may run.
        """
        check_wait("user code")
        await self.watcher.wait_for_room(min(timeout_seconds, MAX_WAIT_SECONDS))
        return await self._run(program, content, timeout_seconds)

    async def _run(self, program: Program, content: bytes, timeout_seconds: float) -> RunResult:
        if self.tier == "none" or self._runtimes is None:
            raise SandboxUnavailable("this worker has no sandbox; see `parley doctor`")
        if program.language not in self.languages:
            raise SandboxUnavailable(f"this worker has no {program.language}")
        async with self._reserve_uid() as uid:
            folder = await asyncio.to_thread(self._write_files, program, uid)
            try:
                async with self._start_process(program, folder, uid, timeout_seconds) as process:
                    with self.watcher.watch(process.pid) as watched:
                        supervisor_ = Supervisor(process, self.limits, watched, str(folder))
                        return await supervisor_.wait(content, timeout_seconds)
            finally:
                await asyncio.to_thread(_remove, folder)

    @asynccontextmanager
    async def _reserve_uid(self) -> AsyncIterator[int]:
        """Yields the user id to switch to; 0 when this process is not root and cannot switch. In
        the Landlock tier, no other run of this machine has the id meanwhile: runs of one user share
        the limit of its processes, and on older kernels they can send each other signals.
        """
        if os.geteuid() != 0:
            yield 0
            return
        if self.tier == "bubblewrap":
            yield bubblewrap.UID
            return
        for _ in _UIDS:
            uid = _UIDS[next(self._uids) % len(_UIDS)]
            with socket.socket(socket.AF_UNIX) as lock:
                # Processes that the init process has not reaped yet count, too.
                if _lock_uid(lock, uid) and not await asyncio.to_thread(_count_threads, uid):
                    yield uid
                    return
        raise SandboxUnavailable("all user ids for runs are in use; try again later")

    def _write_files(self, program: Program, uid: int) -> Path:
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
            _remove(folder)
            raise
        return folder

    @asynccontextmanager
    async def _start_process(
        self, program: Program, folder: Path, uid: int, timeout_seconds: float
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        cpu = int(timeout_seconds) + 2
        options: dict[str, Any] = {
            "stdin": asyncio.subprocess.PIPE,
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
            "env": {},
            "cwd": "/",
            "start_new_session": True,
        }
        if self.tier == "bubblewrap":
            command, descriptor = self._bubblewrap_command(program, folder, cpu)
            start = bubblewrap.with_priority(self.limits)
            start += bubblewrap.without_inherited(descriptor)
            command = [*start, *(bubblewrap.as_nobody() if uid else []), *command]
        else:
            command, descriptor = self._landlock_command(program, folder, uid, cpu), None
            # The launcher runs as this user and gets no more environment than the code.
            home = str(self._runtimes.python) if self._runtimes else ""
            options["env"] = {"PYTHONHOME": home, "LD_LIBRARY_PATH": f"{home}/lib"}
        started: list[asyncio.subprocess.Process] = []
        try:
            # The event loop would end a process whose start is cancelled, but not its children.
            await background.run_to_end(_launch(started, command, descriptor, options))
            yield started[0]
        finally:
            for process in started:
                await supervisor.end(process, str(folder))

    def _bubblewrap_command(
        self, program: Program, folder: Path, cpu: int
    ) -> tuple[list[str], int]:
        """Returns the command and the descriptor of the seccomp filter that it reads."""
        bwrap = bubblewrap.find()
        if bwrap is None or self._runtimes is None:
            raise SandboxUnavailable("bubblewrap is not installed")
        paths = bubblewrap.paths()
        environment = _environment(paths)
        filter_ = seccomp.program(namespaces=True)
        descriptor = os.memfd_create("seccomp", 0)
        os.write(descriptor, filter_)
        os.lseek(descriptor, 0, os.SEEK_SET)
        outer = bubblewrap.command(bwrap, self._runtimes, folder, descriptor, environment)
        inner = bubblewrap.with_limits(
            _interpreter(program, paths),
            _limit_process(self.limits, program),
            cpu,
            result_on_fd3=program.result_on_fd3,
        )
        return [*outer, "--", *inner], descriptor

    def _landlock_command(self, program: Program, folder: Path, uid: int, cpu: int) -> list[str]:
        version = landlock.version()
        if not version or self._runtimes is None:
            raise SandboxUnavailable("this kernel has no Landlock")
        if not uid and version < _SCOPED_SIGNALS:
            # Code of the same user could send signals to this process.
            raise SandboxUnavailable("this kernel's Landlock does not scope signals")
        paths = {
            "python": str(self._runtimes.python),
            "node": str(self._runtimes.node / "node"),
            "packages": str(self._runtimes.packages),
            "code": str(folder),
            "home": str(folder),
        }
        config = {
            "uid": uid,
            "limits": self._resource_limits(program, uid, cpu),
            "nice": self.limits.nice,
            "readable": [
                *_LANDLOCK_READABLE,
                *(paths["packages"], str(self._runtimes.home), paths["code"]),
            ],
            "devices": ["/dev/null"],
            "seccomp": seccomp.program(namespaces=False).hex(),
            "result_on_fd3": program.result_on_fd3,
            "code": paths["code"],
            "command": _interpreter(program, paths),
            "environment": _environment(paths),
        }
        python = str(self._runtimes.python / "bin" / "python3")
        script = str(Path(landlock.__file__))
        return [python, "-s", "-S", "-B", script, msgspec.json.encode(config).decode()]

    def _resource_limits(self, program: Program, uid: int, cpu: int) -> dict[str, int]:
        return {
            "RLIMIT_CORE": 0,
            "RLIMIT_NPROC": self.limits.processes + (0 if uid else _count_threads(os.geteuid())),
            "RLIMIT_DATA": _limit_process(self.limits, program).process_bytes,
            "RLIMIT_FSIZE": 0,
            "RLIMIT_NOFILE": self.limits.open_files,
            "RLIMIT_CPU": cpu,
            "RLIMIT_SIGPENDING": self.limits.pending_signals,
            "RLIMIT_STACK": self.limits.stack_bytes,
            "RLIMIT_MEMLOCK": 0,
            "RLIMIT_MSGQUEUE": 0,
        }


async def _launch(
    started: list[asyncio.subprocess.Process],
    command: list[str],
    descriptor: int | None,
    options: dict[str, Any],
) -> None:
    """Adds the process to `started`, and closes the descriptor that it inherits."""
    try:
        inherited = () if descriptor is None else (descriptor,)
        process = await asyncio.create_subprocess_exec(*command, pass_fds=inherited, **options)
        started.append(process)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _limit_process(limits: Limits, program: Program) -> Limits:
    """Node reserves half a gibibyte for the code of the program and of each of its workers. It is
    not used, but some processors count it as data; the supervisor counts what is used.
    """
    if program.language != "node":
        return limits
    return msgspec.structs.replace(limits, process_bytes=limits.process_bytes + _NODE_RESERVES)


def _interpreter(program: Program, paths: Mapping[str, str]) -> list[str]:
    file = f"{paths['code']}/{program.entry}"
    match program.language:
        case "python":
            python = f"{paths['python']}/bin/python3"
            return [python, "-s", "-S", "-B", "-X", "utf8", file, *program.arguments]
        case "node":
            heap = "--max-old-space-size=256"
            return [paths["node"], heap, "--no-warnings", file, *program.arguments]
        case "bash":
            return ["/usr/bin/bash", "--noprofile", "--norc", file, *program.arguments]


def _environment(paths: Mapping[str, str]) -> dict[str, str]:
    return {
        "PATH": f"/usr/bin:/bin:{paths['python']}/bin:{os.path.dirname(paths['node'])}",  # noqa: PTH120
        "HOME": paths["home"],
        "LANG": "C.UTF-8",
        # Node otherwise reads its configuration from /etc, which it may not.
        "OPENSSL_CONF": "/dev/null",
        "LD_LIBRARY_PATH": f"{paths['python']}/lib",
        "PYTHONHOME": paths["python"],
        "PYTHONPATH": paths["packages"],
    }


def _remove(folder: Path) -> None:
    with suppress(OSError):
        # The folder is read-only for its owner as well.
        folder.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _lock_uid(lock: socket.socket, uid: int) -> bool:
    """Binds an abstract address, which the kernel releases with this process. False when another
    run has it.
    """
    try:
        lock.bind(f"\0parley-sandbox-{uid}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _count_threads(uid: int) -> int:
    """Returns how many threads run as this user: RLIMIT_NPROC counts all of them."""
    threads = 0
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if process.stat().st_uid == uid:
                    threads += sum(1 for _ in (process / "task").iterdir())
    return threads
