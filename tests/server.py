"""A web process, for tests that need a real socket."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import msgspec

from app import settings as configuration
from app.settings import Settings
from tests.ports import free_port
from tests.stores import wait_for

ROOT = Path(__file__).parent.parent


class Server:
    def __init__(self, settings: Settings, *options: str) -> None:
        self.settings = msgspec.structs.replace(settings, port=free_port())
        self.url = f"http://127.0.0.1:{self.settings.port}"
        env = {**os.environ, **configuration.as_env(self.settings)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", *options], env=env, cwd=ROOT
        )

    def wait(self) -> None:
        wait_for(self._is_live, 60, "the web tier")

    def _is_live(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health/live").status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
