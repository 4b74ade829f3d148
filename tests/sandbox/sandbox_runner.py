"""Runs programs and attacks in a sandbox of one tier; attacks have code in three languages.

Attacks in Python make system calls by name, `call("mount", ...)`: the numbers differ between
processors.
"""

import asyncio
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from app.kit.sandbox import seccomp
from app.kit.sandbox.box import Sandbox
from app.kit.sandbox.program import Language, Program, RunResult

_PRELUDES = {
    "python": """
import os, sys
def attempt(name, do):
    try:
        print(name, "could", do(), flush=True)
    except Exception as error:
        print(name, "refused", type(error).__name__, error, flush=True)
def call(name, *words):
    import ctypes
    numbers = @numbers@
    if name not in numbers:
        sys.exit(f"no number is known for {name}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(numbers[name], *words) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "done"
""".replace("@numbers@", str(seccomp.known_calls(platform.machine()))),
    "node": """
const fs = require("fs"), net = require("net"), os = require("os"), path = require("path");
const child = require("child_process");
function attempt(name, does) {
  try { console.log(name, "could", String(does())); }
  catch (error) { console.log(name, "refused", error.code); }
}
function shell(...words) {
  const ended = child.spawnSync(words[0], words.slice(1), { encoding: "utf8", timeout: 3000 });
  return [ended.status, ended.stdout, ended.stderr].join(" ");
}
(async () => {
""",
    "bash": """
attempt() {
  local name=$1 output; shift
  if output=$("$@" 2>/dev/null </dev/null); then
    echo "$name could $output"
  else
    echo "$name refused"
  fi
}
""",
}
_ENDS = {
    "python": "\nprint('tried')\n",
    "node": "\nconsole.log('tried');\n})();\n",
    "bash": "\necho tried\n",
}


# Enough for a loaded machine, and far below the 30 seconds that the attacks sleep.
PROMPT_SECONDS = 10


class Attack(NamedTuple):
    """The same attack in each language. The test replaces `@name@` by a value."""

    python: str
    node: str
    bash: str

    def code(self, language: Language, values: dict[str, object]) -> str:
        text: str = getattr(self, language)
        for name, value in values.items():
            text = text.replace(f"@{name}@", str(value))
        return _PRELUDES[language] + text + _ENDS[language]


class BombResult(NamedTuple):
    result: RunResult
    seconds: float
    max_processes: int


class SandboxRunner:
    def __init__(self, sandbox: Sandbox, home: Path) -> None:
        self.sandbox = sandbox
        self.home = home

    @property
    def tier(self) -> str:
        return self.sandbox.tier

    async def run(
        self,
        language: Language,
        code: str,
        content: bytes = b"",
        seconds: float = 10,
        *arguments: str,
        result_on_fd3: bool = False,
    ) -> RunResult:
        program = Program(
            language=language,
            files={"main": code},
            entry="main",
            arguments=arguments,
            result_on_fd3=result_on_fd3,
        )
        return await self.sandbox.run(program, content, seconds)

    async def run_attack(self, language: Language, attack: Attack, **values: object) -> str:
        """Returns the output and log. Fails unless the attack ran to its end."""
        result = await self.run(language, attack.code(language, values))
        output = (result.output + result.log).decode(errors="replace")
        assert result.ending == "exited", output
        assert "tried" in result.output.decode(errors="replace").split(), output
        return output

    async def run_bomb(
        self,
        language: Language,
        attack: Attack,
        seconds: float,
        mark: str | None = None,
        **values: object,
    ) -> BombResult:
        """Returns the result, the duration and the number of processes. Fails if one is left."""
        mark = mark or new_mark()
        code = attack.code(language, {"mark": mark, **values})
        before = time.monotonic()
        task = asyncio.create_task(self.run(language, code, b"", seconds, mark))
        max_processes = 0
        while not task.done():
            max_processes = max(max_processes, len(find_marked_processes(mark)))
            await asyncio.wait([task], timeout=0.1)
        elapsed = time.monotonic() - before
        await wait_until_gone(mark)
        return BombResult(task.result(), elapsed, max_processes)


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def exists(path: str) -> bool:
    return Path(path).exists()


def new_mark() -> str:
    """Returns a unique argument that identifies the processes of a run."""
    return f"mark-{uuid4().hex}"


def find_marked_processes(mark: str) -> list[int]:
    """Returns the ids of the processes that have the mark among their arguments."""
    pids = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                pids.append(int(process.name))
    return pids


async def wait_until(condition: Callable[[], object], seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def wait_until_gone(mark: str) -> None:
    is_gone = await wait_until(lambda: not find_marked_processes(mark))
    assert is_gone, f"left running: {find_marked_processes(mark)}"


@contextmanager
def run_neighbour(uid: int, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a process outside the sandbox as the user that the code runs as."""
    user = uid if os.geteuid() == 0 else None
    process = subprocess.Popen(
        ["/usr/bin/sleep", "300"],
        cwd=folder,
        env=environment,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
