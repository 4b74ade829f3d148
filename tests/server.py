"""A web process, for tests that need a real socket."""

import os
import subprocess
from contextlib import closing
from http.client import HTTPConnection, HTTPException

import msgspec

from app import settings as configuration
from app.settings import Settings
from tests.ports import free_port
from tests.preloaded import PreloadedProcess
from tests.stores import wait_for


class Server:
    def __init__(self, settings: Settings) -> None:
        self.settings = msgspec.structs.replace(settings, port=free_port())
        self.url = f"http://127.0.0.1:{self.settings.port}"
        self.start()

    def start(self) -> None:
        """Also once it is closed, with the same address."""
        self._process = self._start({**os.environ, **configuration.as_env(self.settings)})

    def _start(self, env: dict[str, str]) -> PreloadedProcess | subprocess.Popen[bytes]:
        return PreloadedProcess("-m", "app.cli", "serve", env=env)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        wait_for(self._is_live, 60, "the web tier")

    def _is_live(self) -> bool:
        # Asked often, so without the certificates that a client for all addresses would read.
        with closing(HTTPConnection("127.0.0.1", self.settings.port, timeout=5)) as connection:
            try:
                connection.request("GET", "/health/live")
                return connection.getresponse().status == 200
            except (OSError, HTTPException):
                return False

    def close(self, seconds: float = 30) -> None:
        self._process.terminate()
        self._process.wait(seconds)
