"""Processes that need not import anything: they are forked from one that has imported the parts.

A process of its own would spend seconds on imports. The tests of `parley up`, of the command line
and of starting processes do without this.
"""

import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent
_IMPORTS = [
    "app.main",
    "tests.mapped",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "workers.main",
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(_IMPORTS)


class _Output:
    """A file descriptor of this process, as one of the other process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __reduce__(self) -> tuple[Any, ...]:
        return _detach, (DupFd(self._fd),)


def _detach(duplicate: Any) -> int:
    fd: int = duplicate.detach()
    return fd


def _run(arguments: list[str], env: dict[str, str], *outputs: int) -> None:
    os.chdir(_ROOT)
    os.environ.clear()
    os.environ.update(env)
    for target, output in enumerate(outputs, start=1):
        os.dup2(output, target)
        os.close(output)
    option, program, *sys.argv[1:] = arguments
    if option == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        exec(program, {"__name__": "__main__"})


class PreloadedProcess:
    """Like Python with the arguments `-m module …` or `-c program …`. It writes to the standard
    output and errors of this process.
    """

    def __init__(self, *arguments: str, env: Mapping[str, str]) -> None:
        outputs = (_Output(1), _Output(2))
        self._process = _context.Process(target=_run, args=(arguments, dict(env), *outputs))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_alive()

    def send_signal(self, number: int) -> None:
        if self._process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self, seconds: float | None = None) -> int:
        """Returns the exit code, negative for a signal."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} runs on after {seconds} s")
        return self._process.exitcode
