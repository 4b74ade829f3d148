"""Headless Chromium, which renders pages with their scripts."""

import shutil
import subprocess
import tempfile

import pytest

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=10000",
)


def find_program() -> str:
    """Returns the path of Chromium. Fails the test when it is not installed."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail(
            "chromium is not installed (Debian: apt-get install chromium); "
            "`./scripts/test --ignore tests/browser` leaves these tests out"
        )
    return path


def render_page(url: str) -> str:
    with tempfile.TemporaryDirectory(prefix="parley-chromium-") as profile:
        process = subprocess.run(
            [find_program(), *_FLAGS, f"--user-data-dir={profile}", "--dump-dom", url],
            capture_output=True,
            text=True,
            timeout=90,
            check=True,
        )
    return process.stdout
