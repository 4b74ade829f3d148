"""Scripts in a child process end by their limits, whatever they do."""

import asyncio
import signal
from pathlib import Path

import pytest

from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused
from tests.assertions import until
from tests.lengths import IS_LONG, rounds
from tests.sandbox.child_scripts import is_running, write_script

_LIMITS = Limits(seconds=30, cpu_seconds=5)


async def test_the_output_of_the_script_is_returned(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import sys; print(sys.stdin.read() * 2, end='')")
    assert await child_process.run(script, b"ab", limits=_LIMITS) == b"abab"


async def test_the_script_has_no_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "secret")
    script = write_script(tmp_path, "import os; print(os.environ.get('PLANTED'), end='')")
    assert await child_process.run(script, b"", limits=_LIMITS) == b"None"


async def test_a_script_that_fails_or_exceeds_a_limit_is_an_error(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    # The kernel counts whole seconds; the limit of each script is tested with its rights.
    endless = ["while True: pass"] if IS_LONG else []
    for code in [
        *endless,
        "bytearray(4 << 30)",
        "print('x' * (9 << 20))",
        "raise SystemExit(3)",
    ]:
        with subtests.test(code=code):
            limits = Limits(seconds=30, cpu_seconds=1)
            with pytest.raises(ProcessFailed):
                await child_process.run(write_script(tmp_path, code), b"", limits=limits)


async def test_the_process_ends_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import time; time.sleep(60)")
    task = asyncio.create_task(child_process.run(script, b"", limits=_LIMITS))
    await until(lambda: is_running(script))
    task.cancel()
    await asyncio.wait([task])
    assert not is_running(script)


async def test_a_process_whose_start_is_cancelled_has_ended_when_its_caller_has(
    tmp_path: Path,
) -> None:
    script = write_script(tmp_path, "import time; time.sleep(60)")
    for number in range(rounds(15, 200)):
        task = asyncio.create_task(child_process.run(script, b"", limits=_LIMITS))
        if number % 5:
            # Often before its pipes are connected.
            while not is_running(script):  # noqa: ASYNC110
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(number / 10_000)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert not is_running(script)


async def test_the_process_ends_when_its_time_is_over(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import time; time.sleep(60)")
    with pytest.raises(ProcessFailed, match=r"more than 0\.3 s") as caught:
        await child_process.run(script, b"", limits=Limits(seconds=0.3, cpu_seconds=5))
    assert caught.value.exit_code == -signal.SIGKILL
    assert not is_running(script)


async def test_a_response_has_a_head_and_a_body(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write(f'{sys.argv[1]}\\n' + sys.stdin.read())"
    script = write_script(tmp_path, code)
    response = await child_process.request(script, b"one\ntwo", "head", limits=_LIMITS)
    assert (response.head, bytes(response.body)) == ("head", b"one\ntwo")
    with pytest.raises(ScriptRefused, match=r"^is empty$"):
        await child_process.request(script, b"", "!is empty", limits=_LIMITS)


async def test_a_response_without_a_line_is_an_error(tmp_path: Path) -> None:
    script = write_script(tmp_path, "print('half of it', end='')")
    with pytest.raises(ProcessFailed):
        await child_process.request(script, b"", limits=_LIMITS)


async def test_a_script_may_write_before_it_reads_its_input(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('x' * 500_000); sys.stdin.read()"
    script = write_script(tmp_path, code)
    output = await child_process.run(script, b"y" * 500_000, limits=_LIMITS)
    assert len(output) == 500_000


async def test_the_pipe_of_a_script_that_wrote_too_much_is_closed(tmp_path: Path) -> None:
    script = write_script(tmp_path, "print('x' * (1 << 20))")
    limits = Limits(seconds=30, cpu_seconds=5, output_bytes=1000)
    before = _list_open_files()
    with pytest.raises(ProcessFailed, match="more than 1000 bytes") as caught:
        await child_process.run(script, b"", limits=limits)
    assert _list_open_files() == before, caught


def _list_open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}
