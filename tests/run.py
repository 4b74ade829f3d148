"""Runs the checks and the tests, and holds the time they take against the limits.

Time is counted in units of a fixed piece of work, which is done before and after: on a machine that
is slow or busy the limits grow with it. Arguments go to pytest, except `--long`, which runs all
rounds, however long they take.
"""

import ctypes
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

# What the piece of work takes on the machine that the limits are meant for, in seconds.
_REFERENCE = 1.0
_WARN_MINUTES = 8
_FAIL_MINUTES = 22
_CORES = 2
# How much of the processors the tests keep busy on a machine of their own. What other programs take
# from them is not counted.
_BUSY_SHARE = 0.9
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    is_long = "--long" in arguments
    os.environ["PARLEY_LONG_TESTS"] = "1" if is_long else "0"
    # Compiled once for all processes that the tests start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    adopt_orphans()
    before, started = time_work(), time.perf_counter()
    with processor_time() as used:
        code = _run([argument for argument in arguments if argument != "--long"])
    minutes = (time.perf_counter() - started) / 60
    slowness = (before + time_work()) / 2 / _REFERENCE
    processor_minutes = sum(used) / 60
    print(f"{minutes:.1f} minutes, {processor_minutes:.1f} minutes of processor time")
    return code or (0 if is_long else judge(minutes, processor_minutes, slowness))


def _run(arguments: list[str]) -> int:
    compiled = [sys.executable, "-m", "compileall", "-q", "-j", "0", "app", "db", "workers"]
    # One process more than there are processors: tests also wait for other processes.
    processes = os.environ.get("PARLEY_TEST_PROCESSES") or str((os.cpu_count() or 1) + 1)
    tests = [sys.executable, "-m", "pytest", "-n", processes, "--dist", "worksteal", *arguments]
    code = _wait_for(subprocess.Popen(compiled))
    if code:
        return code
    with tempfile.TemporaryFile() as output:
        # The checks take what time the tests leave.
        checks = subprocess.Popen(["nice", "./scripts/check"], stdout=output, stderr=output)
        codes = [_wait_for(subprocess.Popen(tests)), _wait_for(checks)]
        output.seek(0)
        print(output.read().decode(), end="", flush=True)
    return next(filter(None, codes), 0)


_exit_codes: dict[int, int] = {}


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit code. Processes without a parent are reaped meanwhile: tests look whether
    they have ended.
    """
    while process.pid not in _exit_codes:
        pid, status = os.waitpid(-1, 0)
        _exit_codes[pid] = os.waitstatus_to_exitcode(status)
    process.returncode = _exit_codes.pop(process.pid)
    return process.returncode


def judge(minutes: float, processor_minutes: float, slowness: float) -> int:
    """Returns the exit code."""
    counted = min(minutes, processor_minutes / _CORES / _BUSY_SHARE) / slowness
    print(
        f"The work that time is measured by took {slowness:.2f} times its usual time, so this run"
        f" counts as {counted:.1f} minutes; the limit is {_WARN_MINUTES}."
    )
    if counted > _FAIL_MINUTES:
        print(f"FAILED: more than {_FAIL_MINUTES} minutes. Make the slowest files faster.")
        return 1
    if counted > _WARN_MINUTES:
        print("WARNING: the tests are slower than they should be. See the slowest files above.")
    return 0


def time_work() -> float:
    """Returns how long the fixed piece of work takes, done by as many processes as there are cores
    to be expected.
    """
    with ProcessPoolExecutor(_CORES) as pool:
        return sum(pool.map(_work, range(_CORES))) / _CORES


def _work(seed: int) -> float:
    started = time.perf_counter()
    digest = str(seed).encode()
    for _ in range(4_000):
        digest = hashlib.sha256(digest).digest()
        rows = [{"id": number, "text": digest.hex()} for number in range(100)]
        rows = json.loads(json.dumps(rows))
        rows.sort(key=lambda row: (row["text"], -row["id"]))
    return time.perf_counter() - started


@contextmanager
def processor_time() -> Iterator[list[float]]:
    """Adds the processor time of the processes that started and ended meanwhile."""
    used: list[float] = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield used
    wait_for_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used += [after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime]


def adopt_orphans() -> None:
    """Processes whose parents end become children of this one, so that their time is counted."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for_orphans(seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.02)
    except ChildProcessError:
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
