"""Runs the command line and other code of this project beside a test."""

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from click.testing import CliRunner

from app import settings as configuration
from app.cli import main
from app.kit import logs
from tests.preloaded import PreloadedProcess

ROOT = Path(__file__).parent.parent


def run_parley(
    settings: configuration.Settings, *command: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a command of `parley` in a thread and returns its result, whatever its exit code.

    A process of its own would spend seconds on imports.
    """
    return run_parley_with(configuration.as_env(settings), *command, stdin=stdin)


def run_parley_with(
    env: Mapping[str, str], *command: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Like `run_parley`, with variables that may be wrong."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        call = partial(CliRunner().invoke, main, command, stdin, env, catch_exceptions=False)
        result = thread.submit(call).result()
    logs.configure("warning", "json")
    return subprocess.CompletedProcess(command, result.exit_code, result.stdout, result.stderr)


def run_parley_process(
    settings: configuration.Settings, *command: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Like `run_parley`, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *command],
        env={**os.environ, **configuration.as_env(settings)},
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Processes:
    """Processes that a test starts and may kill; `close` ends all of them."""

    def __init__(self, settings: configuration.Settings) -> None:
        self._env = {**os.environ, **configuration.as_env(settings)}
        self._running: list[PreloadedProcess] = []

    def python(self, *arguments: str) -> PreloadedProcess:
        process = PreloadedProcess(*arguments, env=self._env)
        self._running.append(process)
        return process

    def kill(self, process: PreloadedProcess) -> None:
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()
