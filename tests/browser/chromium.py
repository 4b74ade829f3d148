"""The browser of these tests."""

import shutil
from pathlib import Path

import pytest

# The first is the same browser without windows, which takes a third of the processor time.
_PROGRAMS = ("chromium-headless-shell", "chromium")
# With RenderDocument, each navigation replaces the frame with all that belongs to it, which takes
# a third of the processor time of a visit. The others are those that Playwright disables; the
# last list of features replaces all before it.
_DISABLED_FEATURES = (
    "RenderDocument",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
)


def list_arguments(recording: Path) -> list[str]:
    """Returns the arguments of Chromium. Its microphone hears the recording, which has to be there
    when a page asks for the microphone.
    """
    return [
        "--no-sandbox",
        "--disable-gpu",
        f"--disable-features={','.join(_DISABLED_FEATURES)}",
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={recording}",
    ]


def find_program() -> str:
    """Returns the path of Chromium. Fails the test when it is not installed."""
    path = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if path is None:
        pytest.fail(
            "chromium is not installed (Debian: apt-get install chromium-headless-shell); "
            "`./scripts/test --ignore tests/browser` leaves these tests out"
        )
    return path
