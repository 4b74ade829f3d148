"""Limits of processes, output and time: an attack ends, and other runs continue."""

import asyncio
from contextlib import suppress

import pytest

from app.sandbox.limits import Limits
from tests.sandbox.sandbox_runner import (
    PROMPT_SECONDS,
    Attack,
    SandboxRunner,
    find_marked_processes,
    in_one_tier,
    new_mark,
    wait_until,
    wait_until_gone,
)

LIMITS = Limits()
# The processes of the sandbox itself.
_LAUNCHERS = 4
# Without a limit, each attack would stop at some thousand processes.
_FORKS = Attack(
    python="""
import time
for _ in range(400):
    try:
        if os.fork() == 0:
            for _ in range(5):
                try:
                    os.fork()
                except OSError:
                    pass
            time.sleep(30)
            os._exit(0)
    except OSError:
        pass
print("full", flush=True)
time.sleep(30)
""",
    node="""
for (let i = 0; i < 400; i++) {
  const started = child.spawn("/usr/bin/bash", ["-c", "sleep 30 & sleep 30; : @mark@"]);
  started.on("error", () => {});
}
console.log("full");
await new Promise((resolve) => setTimeout(resolve, 30000));
""",
    bash="""
for i in {1..400}; do (sleep 30 & sleep 30; : @mark@) & done
wait
""",
)


async def test_a_fork_bomb_stays_within_its_processes(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_FORKS, seconds=0.8)).items():
        with subtests.test(language=language):
            assert outcome.result.ending == "timeout", outcome.result
            assert outcome.seconds < PROMPT_SECONDS
            assert outcome.max_processes <= LIMITS.processes + _LAUNCHERS
    after = await runner.run("bash", "echo fine")
    assert after.output == b"fine\n"


async def test_a_fork_bomb_does_not_starve_the_run_beside_it(runner: SandboxRunner) -> None:
    mark = new_mark()
    code = _FORKS.code("python", {"mark": mark})
    bomb_task = asyncio.create_task(runner.run("python", code, b"", 20, mark))
    assert await wait_until(lambda: len(find_marked_processes(mark)) > LIMITS.processes // 2)
    code = """
import subprocess
print([subprocess.run(["echo", "child"], capture_output=True).stdout for _ in range(5)])
"""
    other = await runner.run("python", code, seconds=10)
    assert not bomb_task.done()
    bomb_task.cancel()
    with suppress(asyncio.CancelledError):
        await bomb_task
    await wait_until_gone(mark)
    assert other.ending == "exited"
    assert other.output.count(b"child") == 5


_FLOOD = Attack(
    python="""
while True:
    os.write(@to@, b"x" * 65536)
""",
    node="""
const text = Buffer.alloc(65536, "x");
for (;;) {
  try { fs.writeSync(@to@, text); }
  catch (error) { if (error.code !== "EAGAIN") throw error; }
}
""",
    bash="""
exec yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >&@to@
""",
)


async def test_a_flood_of_output_ends_the_run(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_FLOOD, seconds=20, to=1)).items():
        with subtests.test(language=language):
            assert outcome.result.ending == "output"
            assert len(outcome.result.output) <= LIMITS.output_bytes + 65536
            assert outcome.seconds < PROMPT_SECONDS


@in_one_tier
async def test_a_flood_of_log_output_is_discarded(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_FLOOD, seconds=0.5, to=2)).items():
        with subtests.test(language=language):
            assert outcome.result.ending == "timeout", outcome.result
            assert len(outcome.result.log) == LIMITS.log_bytes
            assert outcome.seconds < PROMPT_SECONDS


@in_one_tier
async def test_a_large_log_does_not_keep_a_run_from_ending(runner: SandboxRunner) -> None:
    code = "import sys; sys.stderr.write('x' * 5_000_000); print('done')"
    result = await runner.run("python", code)
    assert (result.ending, result.output, len(result.log)) == (
        "exited",
        b"done\n",
        LIMITS.log_bytes,
    )


_ENDLESS = Attack(
    python="""
import re
re.match(r"(a+)+$", "a" * 64 + "b")
""",
    node="""
/^(a+)+$/.test("a".repeat(64) + "b");
""",
    bash="""
while :; do :; done
""",
)


async def test_endless_code_is_killed(runner: SandboxRunner, subtests: pytest.Subtests) -> None:
    for language, outcome in (await runner.run_bombs(_ENDLESS, seconds=0.4)).items():
        with subtests.test(language=language):
            assert outcome.result.ending == "timeout", outcome.result
            assert outcome.seconds < PROMPT_SECONDS
            assert b"tried" not in outcome.result.output
