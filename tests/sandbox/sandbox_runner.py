"""Runs programs and attacks in a sandbox of one tier; attacks have code in three languages.

Attacks in Python make system calls by name, `call("mount", ...)`: the numbers differ between
processors.
"""

import asyncio
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

import pytest

from app.sandbox import seccomp
from app.sandbox.box import Sandbox
from app.sandbox.program import Language, Program, RunResult

# For what is decided outside of the tiers: the limits of a machine, pipes, priorities.
in_one_tier = pytest.mark.parametrize("runner", ["bubblewrap"], indirect=True)
LANGUAGES: Final[tuple[Language, ...]] = ("python", "node", "bash")
# Between two looks at the processes of an attack.
_LOOK_SECONDS = 0.2
# Above those of other runs.
_SAME_UID = 65510

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
# One attack of several in a program. A failure ends only the attack, and its error is its output.
_SECTIONS = {
    "python": """
print("== @name@ ==", flush=True)
try:
    exec(@text@, {"os": os, "sys": sys, "attempt": attempt, "call": call})
    print("tried", flush=True)
except BaseException as error:
    print(type(error).__name__, error, flush=True)
""",
    "node": """
console.log("== @name@ ==");
await (async () => {
@text@
})().then(() => console.log("tried"), (error) => console.log(error));
""",
    "bash": """
exec 2>&1
echo "== @name@ =="
(
@text@
echo tried
)
""",
}
_SECTION = re.compile(r"^== (.+) ==\n", re.MULTILINE)


# Enough for a loaded machine, and far below the 30 seconds that the attacks sleep.
PROMPT_SECONDS = 10


class Attack(NamedTuple):
    """The same attack in each language. The test replaces `@name@` by a value."""

    python: str
    node: str
    bash: str

    def code(self, language: Language, values: Mapping[str, object]) -> str:
        return _PRELUDES[language] + self.fill(language, values) + _ENDS[language]

    def fill(self, language: Language, values: Mapping[str, object]) -> str:
        text: str = getattr(self, language)
        for name, value in values.items():
            text = text.replace(f"@{name}@", str(value))
        return text


class Report:
    """What attacks printed, by language and name."""

    def __init__(self, outputs: Mapping[Language, Mapping[str, str]]) -> None:
        self._outputs = outputs

    def of(self, name: str) -> Iterator[tuple[Language, str]]:
        """Yields the output of an attack in each language. Fails unless it ran to its end."""
        found = [(lang, texts[name]) for lang, texts in self._outputs.items() if name in texts]
        assert found, f"no attack is named {name}"
        for language, output in found:
            assert "tried" in output.splitlines(), (name, language, output)
            yield language, output


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
        result = await self.run(language, attack.code(language, values), b"", 40)
        output = (result.output + result.log).decode(errors="replace")
        assert result.ending == "exited", output
        assert "tried" in result.output.decode(errors="replace").split(), output
        return output

    async def run_attacks(self, attacks: Mapping[str, Attack], **values: object) -> Report:
        """Runs all attacks of a language in one program, and the languages side by side."""
        texts = {
            language: _join(language, attacks, values)
            for language in LANGUAGES
            if any(getattr(attack, language) for attack in attacks.values())
        }
        results = await asyncio.gather(
            *(self.run(language, text, b"", 40) for language, text in texts.items())
        )
        outputs: dict[Language, dict[str, str]] = {}
        for language, result in zip(texts, results, strict=True):
            log = result.log.decode(errors="replace")
            _, *parts = _SECTION.split(result.output.decode(errors="replace"))
            sections = zip(parts[::2], parts[1::2], strict=True)
            outputs[language] = {name: output + log for name, output in sections}
            expected = [name for name, attack in attacks.items() if getattr(attack, language)]
            assert list(outputs[language]) == expected, (language, result)
        return Report(outputs)

    async def run_bombs(
        self, attack: Attack, seconds: float, **values: object
    ) -> dict[Language, BombResult]:
        """Runs the attack in all its languages side by side."""
        languages: list[Language] = [name for name in LANGUAGES if getattr(attack, name)]
        outcomes = await asyncio.gather(
            *(self.run_bomb(language, attack, seconds, **values) for language in languages)
        )
        return dict(zip(languages, outcomes, strict=True))

    async def run_bomb(
        self, language: Language, attack: Attack, seconds: float, **values: object
    ) -> BombResult:
        """Returns the result, the duration and the number of processes. Fails if one is left."""
        mark = new_mark()
        code = attack.code(language, {"mark": mark, **values})
        before = time.monotonic()
        task = asyncio.create_task(self.run(language, code, b"", seconds, mark))
        max_processes = 0
        while not task.done():
            max_processes = max(max_processes, len(_filter_marked(mark, _list_descendants())))
            await asyncio.wait([task], timeout=_LOOK_SECONDS)
        elapsed = time.monotonic() - before
        await wait_until_gone(mark)
        return BombResult(task.result(), elapsed, max_processes)

    @asynccontextmanager
    async def as_one_user(self) -> AsyncIterator[int]:
        """Gives all runs the same user, which no other test process has, and yields its id."""
        async with self.sandbox._reserve_uid() as uid:
            pass
        if uid and self.tier == "landlock":
            uid = _SAME_UID + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.sandbox, "_reserve_uid", lambda: nullcontext(uid))
            yield uid or os.geteuid()


def _join(language: Language, attacks: Mapping[str, Attack], values: Mapping[str, object]) -> str:
    sections = []
    for name, attack in attacks.items():
        if not (text := attack.fill(language, values)):
            continue
        text = repr(text) if language == "python" else text
        sections.append(_SECTIONS[language].replace("@name@", name).replace("@text@", text))
    return _PRELUDES[language] + "".join(sections) + _ENDS[language]


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def exists(path: str) -> bool:
    return Path(path).exists()


def new_mark() -> str:
    """Returns a unique argument that identifies the processes of a run."""
    return f"mark-{uuid4().hex}"


def find_marked_processes(mark: str) -> list[int]:
    """Returns the ids of the processes that have the mark among their arguments."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    return _filter_marked(mark, pids)


def _filter_marked(mark: str, pids: list[int]) -> list[int]:
    own, wanted = os.getpid(), mark.encode()
    return [pid for pid in pids if pid != own and wanted in _read(f"/proc/{pid}/cmdline")]


def _read(path: str) -> bytes:
    """Returns the content, or nothing when the process has ended. Hundreds are read at a time."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, 65536)
    except OSError:
        return b""
    finally:
        os.close(file)


def _list_descendants() -> list[int]:
    """Returns the ids of all processes below this one, without a look at those of others."""
    found, parents = list[int](), [os.getpid()]
    while parents:
        folder = f"/proc/{parents.pop()}/task"
        with suppress(OSError):
            for thread in os.listdir(folder):  # noqa: PTH208  # as fast as can be
                children = [int(pid) for pid in _read(f"{folder}/{thread}/children").split()]
                parents += children
                found += children
    return found


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
def create_open_folder() -> Iterator[Path]:
    """A folder outside the sandbox that every user may write to."""
    folder = Path(tempfile.mkdtemp(prefix="parley-open-", dir="/var/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def new_secret() -> str:
    return f"planted-{uuid4().hex}"


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
