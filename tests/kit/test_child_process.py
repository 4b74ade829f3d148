"""Scripts in a child process end by their limits, whatever they do."""

import asyncio
from pathlib import Path

import psutil
import pytest

from app.kit import child_process
from app.kit.child_process import ProcessFailed
from tests.asking import until


def _write_script(folder: Path, code: str) -> Path:
    path = folder / "script.py"
    path.write_text(code, encoding="utf-8")
    return path


async def test_the_output_of_the_script_is_returned(tmp_path: Path) -> None:
    script = _write_script(tmp_path, "import sys; print(sys.stdin.read() * 2, end='')")
    assert await child_process.run(script, b"ab", cpu_seconds=5) == b"abab"


async def test_the_script_has_no_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "secret")
    script = _write_script(tmp_path, "import os; print(os.environ.get('PLANTED'), end='')")
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
async def test_a_script_that_exceeds_a_limit_fails(tmp_path: Path, code: str) -> None:
    with pytest.raises(ProcessFailed):
        await child_process.run(_write_script(tmp_path, code), b"", cpu_seconds=1)


async def test_the_process_ends_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    script = _write_script(tmp_path, "import time; time.sleep(60)")
    task = asyncio.create_task(child_process.run(script, b"", cpu_seconds=5))
    parent = psutil.Process()
    await until(lambda: _is_running(parent, script))
    task.cancel()
    await asyncio.wait([task])
    assert not _is_running(parent, script)


def _is_running(parent: psutil.Process, script: Path) -> bool:
    return any(str(script) in child.cmdline() for child in parent.children())
