"""A running `parley up` and its output."""

import itertools
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx
import psutil

from tests.preloaded import PreloadedProcess
from tests.processes import run_parley_with
from tests.stores import wait_for

QUESTION = {"message": "When does the shop open?"}


def wait_for_answer(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Like `wait_for`, but less often, because every look is a request."""
    turns = itertools.cycle([True, *[False] * 9])
    wait_for(lambda: next(turns) and condition(), seconds, what)


class Instance:
    """A `parley up` that writes to the file `output`, and serves on `port` of loopback."""

    def __init__(
        self, process: subprocess.Popen[bytes] | PreloadedProcess, output: Path, port: int
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.url, timeout=60)
        self.process = process
        self._output = output

    @property
    def text(self) -> str:
        return self._output.read_text(encoding="utf-8") if self._output.exists() else ""

    @property
    def _has_ended(self) -> bool:
        if isinstance(self.process, PreloadedProcess):
            return not self.process.is_running
        return self.process.poll() is not None

    def wait_printed(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        wait_for(
            lambda: re.search(pattern, self.text) or self._has_ended,
            seconds,
            f"{pattern!r} in {self.text[-2000:]}",
        )
        match = re.search(pattern, self.text)
        assert match is not None, self.text
        return match

    def wait_ready(self, seconds: float = 60) -> None:
        self.wait_printed(r"Stop with Ctrl-C", seconds)

    @property
    def password(self) -> str:
        return self.wait_printed(r"password +(\S+) +\(shown this once\)")[1]

    def login(self, password: str) -> httpx.Response:
        body = {"email": "admin@example.com", "password": password}
        return self.http.post("/auth/login", json=body)

    def client(self) -> httpx.Client:
        token = self.login(self.password).json()["access_token"]
        headers = {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait_ended()

    def wait_ended(self) -> int:
        """Waits for the end of the process; returns its exit code."""
        code = self.process.wait(60)
        self.http.close()
        return code


def start_command(
    command: Sequence[str], env: Mapping[str, str], folder: Path, port: int
) -> Instance:
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, env=env, cwd=folder, stdout=file, stderr=subprocess.STDOUT
        )
    return Instance(process, output, port)


def _environment(data_dir: Path, port: int, **extra: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if "PARLEY" not in name}
    return {
        **inherited,
        "PARLEY_DATA_DIR": str(data_dir),
        "PARLEY_PORT": str(port),
        "PARLEY_METRICS_ADDRESS": "off",
        **extra,
    }


_WITH_OUTPUT = """
import os, runpy, sys
output = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(output, 1)
os.dup2(output, 2)
runpy.run_module("app.cli", run_name="__main__", alter_sys=True)
"""


class Up(Instance):
    """`parley up` of this checkout. Its own process need not import anything, its parts do."""

    def __init__(self, output: Path, data_dir: Path, port: int, **extra: str) -> None:
        self.env = _environment(data_dir, port, **extra)
        process = PreloadedProcess("-c", _WITH_OUTPUT, str(output), "up", env=self.env)
        super().__init__(process, output, port)

    def find_child(self, word: str) -> psutil.Process:
        for process in psutil.Process(self.process.pid).children():
            if word in process.cmdline():
                return process
        raise AssertionError(f"no child runs {word}")

    def cli(self, *command: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return run_parley_with({**self.env, **extra}, *command)


class UpWithoutModel:
    """Like `Up`, without the local model, for a start that is refused or killed."""

    def __init__(self, output: Path, data_dir: Path, port: int) -> None:
        self._output = output
        self.env = _environment(data_dir, port, PARLEY_LOCAL_MODEL="off")
        self._process = PreloadedProcess("-c", _WITH_OUTPUT, str(output), "up", env=self.env)

    @property
    def text(self) -> str:
        return self._output.read_text(encoding="utf-8") if self._output.exists() else ""

    def children(self) -> list[psutil.Process]:
        return list(psutil.Process(self._process.pid).children(recursive=True))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def wait_ended(self) -> int:
        return self._process.wait(60)


def wait_for_model(client: httpx.Client) -> None:
    def is_served() -> bool:
        models = client.get("/api/v1/models").json()["data"]
        return any(model["id"] == "local/smollm2" for model in models)

    wait_for_answer(is_served, "the model")


def create_agent_on_local_model(client: httpx.Client) -> str:
    """Waits for the model, creates an agent that knows when the shop opens, returns its id."""
    wait_for_model(client)
    response = client.post(
        "/api/v1/agents",
        json={
            "name": "Shop assistant",
            "primary_model": "local/smollm2",
            "system_prompt": "You help in a shop. The shop opens at 9 o'clock.",
            "temperature": 0,
            "max_tokens": 40,
        },
    )
    agent_id: str = response.json()["id"]
    return agent_id
