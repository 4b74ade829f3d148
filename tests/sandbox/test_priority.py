"""The processor time of a run: it makes way for other processes, and cannot change that."""

import asyncio
import os
import statistics
import time
from pathlib import Path

import msgspec
import pytest

from tests.sandbox.sandbox_runner import (
    Attack,
    SandboxRunner,
    find_marked_processes,
    in_one_tier,
    new_mark,
    wait_until,
)

_SPINNING = Attack(
    python="""
for number in range(40):
    if os.fork() == 0:
        try:
            os.setsid() if number % 2 else os.setpgid(0, 0)
        except OSError:
            pass
        break
while True:
    pass
""",
    node="",
    bash="",
)


async def _measure_waits(seconds: float) -> float:
    """Returns how much later than asked for this process continues, in milliseconds: the median."""
    waits, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.perf_counter()
        await asyncio.sleep(0.002)
        sum(range(20_000))
        waits.append((time.perf_counter() - started) * 1000)
    return statistics.median(waits)


def _nice_of(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def _session_nice(pid: int) -> str:
    return Path(f"/proc/{pid}/autogroup").read_text().split()[-1]


async def test_spinning_processes_leave_the_processor_to_others(runner: SandboxRunner) -> None:
    """Each of them tries to get a session of its own, which would have a share of its own."""
    mark = new_mark()
    before = await _measure_waits(0.15)
    code = _SPINNING.code("python", {})
    task = asyncio.create_task(runner.run("python", code, b"", 20, mark))
    own_session = os.getsid(0)

    def are_lowered() -> bool:
        pids = find_marked_processes(mark)
        return len(pids) > 30 and all(_nice_of(pid) == 19 for pid in pids)

    assert await wait_until(are_lowered)
    sessions = {os.getsid(pid) for pid in find_marked_processes(mark)}
    assert own_session not in sessions
    assert len(sessions) <= 2
    # The kernel takes few changes per second; the watcher repeats one that was refused.
    assert await wait_until(lambda: {_session_nice(pid) for pid in sessions} == {"5"})
    during = await _measure_waits(0.15)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    # Without the lower priority, each wait took a slice of every spinning process.
    assert during < before * 3 + 10


_CLASS = Attack(
    python="""
import subprocess
def facts():
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
attempt("raise", lambda: os.nice(-5))
attempt("raise", lambda: os.setpriority(os.PRIO_PROCESS, 0, 0))
attempt("lower", lambda: os.setpriority(os.PRIO_PGRP, 0, 10))
for policy in (os.SCHED_OTHER, os.SCHED_FIFO, os.SCHED_RR, os.SCHED_BATCH, os.SCHED_IDLE):
    attempt("policy", lambda: os.sched_setscheduler(0, policy, os.sched_param(0)))
attempt("attributes", lambda: call("sched_setattr", 0, b"\\0" * 48, 0))
attempt("affinity", lambda: os.sched_setaffinity(0, [0]))
attempt("input", lambda: call("ioprio_set", 1, 0, 0))
attempt("session", lambda: call("setsid"))
attempt("group", lambda: open("/proc/self/autogroup", "w").write("-20"))
print("child", *facts(), flush=True)
if os.fork() == 0:
    if os.fork() == 0:
        print("grandchild", *facts(), flush=True)
        subprocess.run(["nice", "-n", "-9", "sh", "-c", "echo program $(nice)"])
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
""",
    node="",
    bash="",
)


async def test_no_process_of_a_run_changes_its_class(runner: SandboxRunner) -> None:
    output = await runner.run_attack("python", _CLASS)
    assert " could" not in output
    nice = runner.sandbox.limits.nice + _nice_of(0)
    assert f"child {nice} {os.SCHED_OTHER}\n" in output
    assert f"grandchild {nice} {os.SCHED_OTHER}\n" in output
    assert f"program {nice}\n" in output


_LATER = "import os, time; time.sleep(0.5); print(os.getpriority(os.PRIO_PROCESS, 0))"


@in_one_tier
async def test_a_short_run_keeps_its_priority(runner: SandboxRunner) -> None:
    result = await runner.run("python", _LATER)
    assert int(result.output) == runner.sandbox.limits.nice + _nice_of(0)


@in_one_tier
async def test_a_run_that_lasts_has_the_lowest_priority_whatever_time_it_shows(
    runner: SandboxRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody adds up the time of children that end without being waited for."""
    limits = msgspec.structs.replace(runner.sandbox.limits, normal_seconds=0.1)
    monkeypatch.setattr(runner.sandbox.watcher, "_limits", limits)
    result = await runner.run("python", _LATER)
    assert int(result.output) == 19
