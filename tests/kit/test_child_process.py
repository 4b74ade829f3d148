"""Small programs in a process of their own: whatever they do, they end."""

import asyncio
from pathlib import Path

import psutil
import pytest

from app.kit import child_process
from app.kit.child_process import ProcessFailed
from tests.asking import until


def _script(folder: Path, code: str) -> Path:
    path = folder / "script.py"
    path.write_text(code, encoding="utf-8")
    return path


async def test_what_it_prints_is_the_answer(tmp_path: Path) -> None:
    script = _script(tmp_path, "import sys; print(sys.stdin.read() * 2, end='')")
    assert await child_process.run(script, b"ab", cpu_seconds=5) == b"abab"


async def test_it_sees_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "secret")
    script = _script(tmp_path, "import os; print(os.environ.get('PLANTED'), end='')")
    assert await child_process.run(script, b"", cpu_seconds=5) == b"None"


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "bytearray(4 << 30)",
        "print('x' * (9 << 20))",
        "open('/proc/self/fd/1'); raise SystemExit(3)",
        "import tempfile; tempfile.TemporaryFile().write(bytes(8 << 20))",
    ],
)
async def test_whoever_takes_too_much_gives_no_answer(tmp_path: Path, code: str) -> None:
    with pytest.raises(ProcessFailed):
        await child_process.run(_script(tmp_path, code), b"", cpu_seconds=1)


async def test_it_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    script = _script(tmp_path, "import time; time.sleep(60)")
    asked = asyncio.create_task(child_process.run(script, b"", cpu_seconds=5))
    ours = psutil.Process()
    await until(lambda: _running(ours, script))
    asked.cancel()
    await asyncio.wait([asked])
    assert not _running(ours, script)


def _running(parent: psutil.Process, script: Path) -> bool:
    return any(str(script) in one.cmdline() for one in parent.children())
