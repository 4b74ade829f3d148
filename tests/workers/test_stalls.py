"""Jobs that hold the event loop, and processes that do not run."""

import os
import subprocess
import sys
import time
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.domain.job import Job
from app.observe import loop_watcher, metrics
from app.observe.loop_watcher import LoopWatcher
from app.services import Services
from tests.assertions import until
from tests.processes import ROOT
from tests.workers.factories import QUICK, accept, create_runner
from workers.runner import Runner, describe_work

# Stops itself, and is continued by another process.
_STOPPED_PROCESS = """
import asyncio, os, signal, subprocess
from app.observe import metrics
from app.observe.loop_watcher import LoopWatcher

async def main():
    with LoopWatcher({}):
        await asyncio.sleep(0.1)
        command = f"sleep 0.8; kill -CONT {os.getpid()}"
        with subprocess.Popen(["sh", "-c", command]):
            os.kill(os.getpid(), signal.SIGSTOP)
        while not metrics.LOOP_STALLS.collect()[0].samples:
            await asyncio.sleep(0.01)

asyncio.run(main())
print({item.labels["cause"]: item.value for item in metrics.LOOP_STALLS.collect()[0].samples})
"""


async def _hold_the_loop(_job: Job) -> None:
    time.sleep(0.35)  # noqa: ASYNC251  # what is tested


def _count_stalls() -> float:
    count: float = metrics.LOOP_STALLS.labels("process")._value.get()
    return count


def _has_counted(count: float) -> bool:
    return _count_stalls() == count


async def test_stalls_of_one_kind_are_counted_while_one_was_just_logged(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, stalls = create_runner(services, _hold_the_loop), _count_stalls()
    with capture_logs() as lines, LoopWatcher({Runner.attempt.__code__: describe_work}):
        for count in (1, 2, 3):
            if count == 3:
                monkeypatch.setattr(loop_watcher, "_LOG_EVERY_SECONDS", 0)
            work_id = await accept(services, tenant)
            await runner.run(work_id)
            await until(partial(_has_counted, stalls + count))
        await until(lambda: len(_stalls_of(lines)) == 2)
    first, last = _stalls_of(lines)
    assert (first["kind"], first["tenant_id"], first["unlogged"]) == (QUICK.name, tenant, 0)
    assert (last["work_id"], last["unlogged"]) == (work_id, 1)


def _stalls_of(lines: list[Any]) -> list[Any]:
    return [line for line in lines if line["event"] == "the event loop was held"]


def test_a_process_that_the_machine_does_not_run_logs_nothing() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _STOPPED_PROCESS],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (result.stdout, result.stderr) == ("{'machine': 1.0}\n", "")
