"""A child ends with its parent, also on kernels without a parent-death signal."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from app.local import child
from tests.local.process_state import has_ended
from tests.processes import ROOT
from tests.stores import wait_for

_PROGRAM = "import time; time.sleep(60)"
_PARENT = f"""
import signal, subprocess, sys, time
from app.local import child
command = child.command(signal.SIGTERM, "tie", sys.executable, "-c", {_PROGRAM!r})
at = command.index(child.__file__)
command[at : at + 1] = sys.argv[1:]
process = subprocess.Popen(command)
print(process.pid, flush=True)
process.wait()
time.sleep(60)
"""
# The script behaves as on a system that is not Linux.
_NOT_LINUX = f"""
import runpy, sys
sys.platform = "darwin"
runpy.run_path({child.__file__!r}, run_name="__main__")
"""


@pytest.fixture(params=["kernel", "watcher"])
def parent(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    script = [child.__file__] if request.param == "kernel" else ["-c", _NOT_LINUX]
    command = [sys.executable, "-c", _PARENT, *script]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _wait_for_program(parent: subprocess.Popen[str]) -> psutil.Process:
    """Waits until the child executes the program; returns its process."""
    assert parent.stdout is not None
    process = psutil.Process(int(parent.stdout.readline()))
    command = [sys.executable, "-c", _PROGRAM]
    wait_for(lambda: process.cmdline() == command, what="the program")
    return process


def test_a_child_ends_when_its_parent_is_killed(parent: subprocess.Popen[str]) -> None:
    program = _wait_for_program(parent)
    watchers = program.children()
    parent.kill()
    parent.wait()
    wait_for(lambda: all(map(has_ended, [program, *watchers])), 10, "the end of the child")


def test_a_child_does_not_start_when_its_parent_has_ended() -> None:
    command = child.command(signal.SIGTERM, "tie", sys.executable, "-c", "print('began')")
    # Another process starts it, so that this process is not its parent.
    completed = subprocess.run(
        [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *command],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert completed.stdout == ""


def test_the_watcher_ends_when_the_child_ends(parent: subprocess.Popen[str]) -> None:
    program = _wait_for_program(parent)
    watchers = program.children()
    os.kill(program.pid, signal.SIGKILL)
    wait_for(lambda: all(map(has_ended, [program, *watchers])), 10, "the end of the child")
    assert parent.poll() is None
