"""Runs the commands of the documentation against an instance."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.local.instance import Up, wait_for_model
from tests.ports import free_port

# An answer that is an error ends the script; so does a command that fails within a pipe.
_START = """
set -euo pipefail
curl() { command curl --fail-with-body --max-time 120 --no-progress-meter "$@"; }
"""
# The tutorial sends a webhook to this machine.
_ENVIRONMENT = {"OMP_THREAD_LIMIT": "1", "PARLEY_EGRESS_ALLOW": "127.0.0.1"}


@contextmanager
def run_instance() -> Iterator[Up]:
    with tempfile.TemporaryDirectory(prefix="parley-docs-") as folder:
        data_dir = Path(folder) / "data"
        started = Up(data_dir.with_name("output"), data_dir, free_port(), **_ENVIRONMENT)
        try:
            started.wait_ready()
            with started.client() as client:
                wait_for_model(client)
            yield started
        finally:
            started.stop()


def run_commands(instance: Up, commands: list[str], folder: Path) -> str:
    """Runs the commands in one shell; returns what they print."""
    script = "\n".join([_START, f"password={instance.password}", *commands])
    script = script.replace("http://127.0.0.1:8000", instance.url)
    shell = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=240, check=False, cwd=folder
    )
    assert shell.returncode == 0, shell.stdout[-2000:] + shell.stderr[-2000:]
    return shell.stdout
