"""A child ends with its parent, also where the kernel does not see to it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from app.local import child
from tests.processes import ROOT
from tests.stores import wait_for

_PROGRAM = "import time; time.sleep(60)"
_PARENT = f"""
import signal, subprocess, sys, time
from app.local import child
words = child.command(signal.SIGTERM, "tie", sys.executable, "-c", {_PROGRAM!r})
at = words.index(child.__file__)
words[at : at + 1] = sys.argv[1:]
process = subprocess.Popen(words)
print(process.pid, flush=True)
process.wait()
time.sleep(60)
"""
# The same on a system that is not Linux.
_ELSEWHERE = f"""
import runpy, sys
sys.platform = "darwin"
runpy.run_path({child.__file__!r}, run_name="__main__")
"""


@pytest.fixture(params=["kernel", "watcher"])
def parent(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    how = [child.__file__] if request.param == "kernel" else ["-c", _ELSEWHERE]
    command = [sys.executable, "-c", _PARENT, *how]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _program(parent: subprocess.Popen[str]) -> psutil.Process:
    """What the child has become."""
    assert parent.stdout is not None
    process = psutil.Process(int(parent.stdout.readline()))
    became = [sys.executable, "-c", _PROGRAM]
    wait_for(lambda: process.cmdline() == became, what="the program")
    return process


def _is_over(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_killed_parent_takes_its_child_along(parent: subprocess.Popen[str]) -> None:
    program = _program(parent)
    beside = program.children()
    parent.kill()
    parent.wait()
    wait_for(lambda: all(map(_is_over, [program, *beside])), 10, "the end of the child")


def test_a_parent_that_is_gone_before_its_child_begins_has_none() -> None:
    command = child.command(signal.SIGTERM, "tie", sys.executable, "-c", "print('began')")
    # Somebody else than this process starts it.
    done = subprocess.run(
        [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *command],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert done.stdout == ""


def test_nothing_is_left_of_a_child_that_ends_by_itself(parent: subprocess.Popen[str]) -> None:
    program = _program(parent)
    beside = program.children()
    os.kill(program.pid, signal.SIGKILL)
    wait_for(lambda: all(map(_is_over, [program, *beside])), 10, "the end of the child")
    assert parent.poll() is None
