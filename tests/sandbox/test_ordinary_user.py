"""A worker that is not root: in the weaker tier its code is the same user as itself."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT
from tests.sandbox.cage import Cage


@pytest.fixture(scope="module")
def seen(cage: Cage) -> Iterator[dict[str, Any]]:
    folder = Path(tempfile.mkdtemp(prefix="parley-ordinary-", dir="/var/tmp"))
    folder.chmod(0o755)
    command = [sys.executable, "-m", "tests.sandbox.ordinary_user", str(folder), cage.tier]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_tier_starts_without_root(cage: Cage, seen: dict[str, Any]) -> None:
    assert seen["uid"] != 0
    assert seen["tier"] == cage.tier


def test_code_does_nothing_to_its_own_user(seen: dict[str, Any]) -> None:
    assert (seen["ending"], seen["said"]) == ("exited", ["bounded"])


def test_the_file_of_the_worker_is_as_it_was(seen: dict[str, Any]) -> None:
    assert seen["file"] == ["0o600", True, "planted"]


def test_no_folder_of_a_run_is_left(seen: dict[str, Any]) -> None:
    assert seen["left"] == []
