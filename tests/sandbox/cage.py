"""What these tests share: a sandbox held to one tier, and attacks in three languages.

Attacks in Python make system calls by name, `call("mount", …)`: each processor numbers them in its
own way.
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
  local name=$1 got; shift
  if got=$("$@" 2>/dev/null </dev/null); then echo "$name could $got"; else echo "$name refused"; fi
}
""",
}
_ENDS = {
    "python": "\nprint('tried')\n",
    "node": "\nconsole.log('tried');\n})();\n",
    "bash": "\necho tried\n",
}


class Attack(NamedTuple):
    """The same in each language. `@name@` stands for a value that the test knows."""

    python: str
    node: str
    bash: str

    def code(self, language: Language, values: dict[str, object]) -> str:
        text: str = getattr(self, language)
        for name, value in values.items():
            text = text.replace(f"@{name}@", str(value))
        return _PRELUDES[language] + text + _ENDS[language]


class Watched(NamedTuple):
    ran: RunResult
    seconds: float
    most_processes: int


class Cage:
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
        given: bytes = b"",
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
        return await self.sandbox.run(program, given, seconds)

    async def attack(self, language: Language, attack: Attack, **values: object) -> str:
        """All that it said, once it came to its end: an attack that broke off proves nothing."""
        ran = await self.run(language, attack.code(language, values))
        said = (ran.output + ran.log).decode(errors="replace")
        assert ran.ending == "exited", said
        assert "tried" in ran.output.decode(errors="replace").split(), said
        return said

    async def bomb(
        self, language: Language, attack: Attack, seconds: float, **values: object
    ) -> Watched:
        """Its end, how long that took, how many processes there were, and that none is left."""
        mark = f"mark-{uuid4().hex}"
        code = attack.code(language, {"mark": mark, **values})
        before = time.monotonic()
        running = asyncio.create_task(self.run(language, code, b"", seconds, mark))
        most = 0
        while not running.done():
            most = max(most, len(with_mark(mark)))
            await asyncio.wait([running], timeout=0.1)
        took = time.monotonic() - before
        await gone(mark)
        return Watched(running.result(), took, most)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def exists(path: str) -> bool:
    return Path(path).exists()


def with_mark(mark: str) -> list[int]:
    """Processes that have this among their arguments."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(process.name))
    return found


async def holds(condition: Callable[[], object], seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def gone(mark: str) -> None:
    assert await holds(lambda: not with_mark(mark)), f"left running: {with_mark(mark)}"


@contextmanager
def neighbour(uid: int, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the machine that belongs to the very user whom the code runs as."""
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
