"""The browser of these tests."""

import shutil

import pytest


def find_program() -> str:
    """Returns the path of Chromium. Fails the test when it is not installed."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail(
            "chromium is not installed (Debian: apt-get install chromium); "
            "`./scripts/test --ignore tests/browser` leaves these tests out"
        )
    return path
