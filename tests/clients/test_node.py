"""Packages of npm are installed once, also by processes that start together."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.kit import node

_LOCK = '{"name": "empty", "lockfileVersion": 3, "packages": {"": {}}}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "package-lock.json").write_text(_LOCK)
    (tmp_path / "script.mjs").write_text("console.log(process.argv[2], process.env.WORD)")
    return tmp_path


def test_a_script_runs_and_its_output_is_returned(folder: Path) -> None:
    assert node.run(folder / "script.mjs", "a", env={"WORD": "b"}) == "a b\n"


def test_a_script_that_fails_says_why(folder: Path) -> None:
    (folder / "script.mjs").write_text("throw new Error('no luck')")
    with pytest.raises(node.NodeError, match="no luck"):
        node.run(folder / "script.mjs")


def test_packages_are_installed_once_for_each_lock(folder: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        installed = [*pool.map(node.install, [folder, folder])]
    assert installed == [folder / "node_modules"] * 2
    stamp = folder / "node_modules" / ".installed"
    checksum, installed_at = stamp.read_text(), stamp.stat().st_mtime_ns
    node.install(folder)
    assert stamp.stat().st_mtime_ns == installed_at
    (folder / "package-lock.json").write_text(_LOCK + "\n")
    node.install(folder)
    assert stamp.read_text() != checksum


def test_a_failed_installation_is_not_taken_for_one(folder: Path) -> None:
    (folder / "package.json").write_text("{")
    with pytest.raises(node.NodeError, match=r"npm-cli\.js ci"):
        node.install(folder)
    assert not (folder / "node_modules" / ".installed").exists()
