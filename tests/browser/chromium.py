"""The browser of these tests."""

import shutil

import pytest

# The first is the same browser without windows, which takes a third of the processor time.
_PROGRAMS = ("chromium-headless-shell", "chromium")


def find_program() -> str:
    """Returns the path of Chromium. Fails the test when it is not installed."""
    path = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if path is None:
        pytest.fail(
            "chromium is not installed (Debian: apt-get install chromium-headless-shell); "
            "`./scripts/test --ignore tests/browser` leaves these tests out"
        )
    return path
