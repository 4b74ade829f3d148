"""Running user code. Fail-closed: where no tier passes its test, nothing runs."""

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from app.kit import logs
from app.kit.sandbox import bubblewrap, landlock, prisoner, runtimes, seccomp, watch
from app.kit.sandbox.limits import Limits
from app.kit.sandbox.program import Language, Program, Ran
from app.kit.sandbox.runtimes import Runtimes
from app.kit.sandbox.watch import Watch
from app.settings import Settings

log = logs.get("sandbox")

Tier = Literal["bubblewrap", "landlock", "none"]

# No run lasts as long.
_STALE_SECONDS = 900
_TEST_SECONDS = 10.0
_LANGUAGES: Final[tuple[Language, ...]] = ("python", "node", "bash")
# Users that no Debian package and nobody else has; one for each run of the weaker tier.
_UIDS = range(65000, 65500)
_SCOPED_SIGNALS = 6


class SandboxUnavailable(Exception):
    """There is no cage on this machine that user code could run in."""


class Sandbox:
    """One per process; `start` finds the tier."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.sandbox_home
        self._runtimes: Runtimes | None = None
        # Several workers begin in different places: who shares a user shares its limits.
        self._uids = count(secrets.randbelow(len(_UIDS)))
        self.limits = Limits()
        self.tier: Tier = "none"

    async def start(self, allowed: tuple[Tier, ...] = ("bubblewrap", "landlock")) -> Tier:
        """Try the tiers, the strongest first; the first that keeps a prisoner is used."""
        self.tier = "none"
        if sys.platform != "linux":
            log.info(
                "no sandbox for user code", reason=f"{sys.platform} has no tier; Linux has two"
            )
            return self.tier
        try:
            self._runtimes = await asyncio.to_thread(runtimes.prepare, self._folder)
            await self.tidy()
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
        canary = self._folder / "runs" / f"canary-{os.getpid()}"
        canary.write_text("seen", encoding="ascii")
        canary.chmod(0o644)
        code = prisoner.CODE.replace("CANARY", repr(str(canary)))
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

    async def tidy(self) -> None:
        """End and remove what a killed worker left behind, once it is old enough to be that."""
        await asyncio.to_thread(self._tidy)

    def _tidy(self) -> None:
        runs = self._folder / "runs"
        runs.mkdir(exist_ok=True)
        runs.chmod(0o711)
        with os.scandir(runs) as entries:
            for entry in entries:
                with suppress(OSError):
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    if entry.is_dir(follow_symlinks=False) and age > _STALE_SECONDS:
                        watch.end_users_of(entry.path)
                        _remove(Path(entry.path))

    async def run(self, program: Program, given: bytes, timeout_seconds: float) -> Ran:
        if self.tier == "none" or self._runtimes is None:
            raise SandboxUnavailable("this worker has no sandbox; see `parley doctor`")
        if program.language not in self.languages:
            raise SandboxUnavailable(f"this worker has no {program.language}")
        uid = self._uid()
        folder = await asyncio.to_thread(self._written, program, uid)
        try:
            async with self._started(program, folder, uid, timeout_seconds) as process:
                return await Watch(process, self.limits).until_over(given, timeout_seconds)
        finally:
            await asyncio.to_thread(_remove, folder)

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
            _remove(folder)
            raise
        return folder

    @asynccontextmanager
    async def _started(
        self, program: Program, folder: Path, uid: int, timeout_seconds: float
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
            command, descriptor = self._in_bubblewrap(program, folder, cpu)
            close = bubblewrap.without_inherited(descriptor)
            command = [*close, *(bubblewrap.as_nobody() if uid else []), *command]
        else:
            command, descriptor = self._in_landlock(program, folder, uid, cpu), None
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
            watch.end(process)
            await watch.closed(process)

    def _in_bubblewrap(self, program: Program, folder: Path, cpu: int) -> tuple[list[str], int]:
        found = bubblewrap.find()
        if found is None or self._runtimes is None:
            raise SandboxUnavailable("bubblewrap is not installed")
        places = bubblewrap.places()
        environment = _environment(places)
        filter_ = seccomp.program(namespaces=True)
        descriptor = os.memfd_create("seccomp", 0)
        os.write(descriptor, filter_)
        os.lseek(descriptor, 0, os.SEEK_SET)
        outer = bubblewrap.command(found, self._runtimes, folder, descriptor, environment)
        inner = bubblewrap.entered(
            _interpreter(program, places), self.limits, cpu, apart=program.apart
        )
        return [*outer, "--", *inner], descriptor

    def _in_landlock(self, program: Program, folder: Path, uid: int, cpu: int) -> list[str]:
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
                # Who could write to zero could map and share it: memory that no limit counts.
                *("/dev/zero", "/dev/urandom", "/dev/random"),
            ],
            "devices": ["/dev/null"],
            "seccomp": seccomp.program(namespaces=False).hex(),
            "apart": program.apart,
            "code": places["code"],
            "command": _interpreter(program, places),
            "environment": _environment(places),
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


def _remove(folder: Path) -> None:
    with suppress(OSError):
        # Its owner may not write to it either.
        folder.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _own_processes() -> int:
    """How many processes and threads we, as this user, have already: the limit counts them all."""
    mine, found = os.geteuid(), 0
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if process.stat().st_uid == mine:
                    found += sum(1 for _ in (process / "task").iterdir())
    return found
