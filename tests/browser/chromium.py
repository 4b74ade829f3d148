"""Headless Chromium for tests: what a page shows once its scripts have run."""

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


def program() -> str:
    """Its path. A test of a page that was never opened would assert nothing, so it fails."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail(
            "chromium is not installed (Debian: apt-get install chromium); "
            "`./scripts/test --ignore tests/browser` leaves these tests out"
        )
    return found


def rendered(url: str) -> str:
    with tempfile.TemporaryDirectory(prefix="parley-chromium-") as profile:
        done = subprocess.run(
            [program(), *_FLAGS, f"--user-data-dir={profile}", "--dump-dom", url],
            capture_output=True,
            text=True,
            timeout=90,
            check=True,
        )
    return done.stdout
