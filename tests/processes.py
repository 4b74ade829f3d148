"""Processes that a test starts and may kill; `close` ends all of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from app import settings as configuration

ROOT = Path(__file__).parent.parent


class Processes:
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
