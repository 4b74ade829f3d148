"""A worker that is not root: in the Landlock tier its code runs as the worker's own user."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.preloaded import PreloadedProcess
from tests.sandbox.sandbox_runner import SandboxRunner

_SCRIPT = "tests.sandbox.ordinary_user"


@pytest.fixture(scope="module")
def outcome(runner: SandboxRunner) -> Iterator[dict[str, Any]]:
    folder = Path(tempfile.mkdtemp(prefix="parley-ordinary-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        process = PreloadedProcess("-m", _SCRIPT, str(folder), runner.tier, env=os.environ)
        assert process.wait(60) == 0
        yield json.loads((folder / "observations.json").read_text(encoding="ascii"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_tier_starts_without_root(runner: SandboxRunner, outcome: dict[str, Any]) -> None:
    assert outcome["uid"] != 0
    assert outcome["tier"] == runner.tier


def test_code_cannot_affect_processes_and_files_of_its_own_user(outcome: dict[str, Any]) -> None:
    assert (outcome["ending"], outcome["output"]) == ("exited", ["bounded"])


def test_the_file_of_the_worker_does_not_change(outcome: dict[str, Any]) -> None:
    assert outcome["file"] == ["0o600", True, "planted"]


def test_no_folder_of_a_run_is_left(outcome: dict[str, Any]) -> None:
    assert outcome["remaining_runs"] == []
