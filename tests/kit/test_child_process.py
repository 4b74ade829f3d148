"""Scripts in a child process end by their limits, whatever they do."""

import asyncio
from pathlib import Path

import pytest

from app.kit import child_process
from app.kit.child_process import ProcessFailed
from tests.asking import until
from tests.kit.child_scripts import is_running, write_script


async def test_the_output_of_the_script_is_returned(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import sys; print(sys.stdin.read() * 2, end='')")
    assert await child_process.run(script, b"ab", cpu_seconds=5) == b"abab"


async def test_the_script_has_no_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "secret")
    script = write_script(tmp_path, "import os; print(os.environ.get('PLANTED'), end='')")
    assert await child_process.run(script, b"", cpu_seconds=5) == b"None"


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "bytearray(4 << 30)",
        "print('x' * (9 << 20))",
        "raise SystemExit(3)",
        "import tempfile; tempfile.TemporaryFile().write(bytes(8 << 20))",
    ],
)
async def test_a_script_that_fails_or_exceeds_a_limit_is_an_error(
    tmp_path: Path, code: str
) -> None:
    with pytest.raises(ProcessFailed):
        await child_process.run(write_script(tmp_path, code), b"", cpu_seconds=1)


async def test_the_process_ends_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import time; time.sleep(60)")
    task = asyncio.create_task(child_process.run(script, b"", cpu_seconds=5))
    await until(lambda: is_running(script))
    task.cancel()
    await asyncio.wait([task])
    assert not is_running(script)
