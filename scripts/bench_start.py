"""Measures how long a worker and a web process take from their start until they are ready."""

import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import msgspec

from app import settings as configuration
from app.settings import Settings

ROOT = Path(__file__).parent.parent
ROUNDS = 3


def bench(settings: Settings, port: int, row: Callable[..., None]) -> None:
    """Postgres and Redis run already."""
    settings = msgspec.structs.replace(settings, log_level="info", log_format="json", port=port)
    starts = (("worker", "worker", _wait_for_worker, 1.8), ("web", "serve", _wait_for_web, 2.8))
    for name, command, wait, bar in starts:
        seconds = statistics.median(_measure(settings, command, wait) for _ in range(ROUNDS))
        row(f"start of a {name} process", f"{seconds:.2f} s", "", "", f"≤ {bar} s",
            holds=seconds <= bar)  # fmt: skip


def _measure(
    settings: Settings, command: str, wait: Callable[[subprocess.Popen[str], Settings], None]
) -> float:
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", command],
        env={**os.environ, **configuration.as_env(settings)},
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait(process, settings)
        return time.perf_counter() - started
    finally:
        process.terminate()
        process.communicate()


def _wait_for_worker(process: subprocess.Popen[str], _settings: Settings) -> None:
    if not any("worker ready" in line for line in process.stderr or ()):
        raise RuntimeError("the worker ended before it was ready")


def _wait_for_web(process: subprocess.Popen[str], settings: Settings) -> None:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{settings.port}/health/ready"):
                return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError("the web process ended before it was ready")
