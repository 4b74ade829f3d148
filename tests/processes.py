"""Runs the code of this project in processes of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from app import settings as configuration

ROOT = Path(__file__).parent.parent


def run_parley(
    settings: configuration.Settings, *command: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a command of `parley` and returns its result, whatever its exit code."""
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
        self._running: list[subprocess.Popen[bytes]] = []

    def python(self, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, *arguments], env=self._env, cwd=ROOT)
        self._running.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()
