"""Packages that an operator installs for user code, from wheels on disk."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.sandbox import packages
from app.sandbox.box import Sandbox
from app.sandbox.program import Program
from app.settings import Settings
from tests.packages import wheel
from tests.sandbox.sandbox_runner import SandboxRunner


@pytest.fixture
def sandbox_dir() -> Iterator[Path]:
    """A separate sandbox folder."""
    folder = Path(tempfile.mkdtemp(prefix="parley-packages-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def test_nothing_is_installed_at_first(sandbox_dir: Path) -> None:
    assert packages.installed(sandbox_dir) == {}
    assert packages.missing(sandbox_dir, ["anything"]) == ["anything"]


def test_a_package_is_added_and_listed(sandbox_dir: Path, tmp_path: Path) -> None:
    packages.add(sandbox_dir, [str(wheel(tmp_path, "planted-package", "1.2"))])
    assert packages.installed(sandbox_dir) == {"planted-package": "1.2"}
    assert packages.missing(sandbox_dir, ["Planted_Package", "other"]) == ["other"]


def test_a_newer_version_replaces_the_older(sandbox_dir: Path, tmp_path: Path) -> None:
    for version in ("1.2", "1.3"):
        packages.add(sandbox_dir, [str(wheel(tmp_path, "planted-package", version))])
    assert packages.installed(sandbox_dir) == {"planted-package": "1.3"}


def test_a_removed_package_leaves_nothing(sandbox_dir: Path, tmp_path: Path) -> None:
    packages.add(sandbox_dir, [str(wheel(tmp_path, "planted-package", "1.2"))])
    packages.add(sandbox_dir, [str(wheel(tmp_path, "planted-other", "2.0"))])
    assert packages.remove(sandbox_dir, "Planted.Package")
    assert packages.installed(sandbox_dir) == {"planted-other": "2.0"}
    assert not list(sandbox_dir.rglob("planted_package*"))
    assert list(sandbox_dir.rglob("planted_other.py"))


def test_a_missing_package_is_not_removed(sandbox_dir: Path) -> None:
    assert not packages.remove(sandbox_dir, "planted-package")


def test_an_option_is_no_package(sandbox_dir: Path) -> None:
    with pytest.raises(packages.CannotInstall, match="--index-url"):
        packages.add(sandbox_dir, ["--index-url=http://127.0.0.1:9/", "planted"])


def test_sources_are_not_built(sandbox_dir: Path, tmp_path: Path) -> None:
    """Building would run code of the package outside the sandbox."""
    folder = tmp_path / "planted"
    folder.mkdir()
    marker = tmp_path / "ran"
    (folder / "setup.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    shutil.make_archive(str(tmp_path / "planted-1.0"), "gztar", tmp_path, "planted")
    for source in (folder, tmp_path / "planted-1.0.tar.gz"):
        with pytest.raises(packages.CannotInstall):
            packages.add(sandbox_dir, [str(source)])
    assert not marker.exists()
    assert packages.installed(sandbox_dir) == {}


async def test_user_code_imports_only_added_packages_despite_a_strict_umask(
    runner: SandboxRunner, sandbox_dir: Path, tmp_path: Path
) -> None:
    home = sandbox_dir / "sandbox"
    sandbox = Sandbox(Settings(data_dir=sandbox_dir / "data", sandbox_dir=home))
    before = os.umask(0o077)
    try:
        packages.add(home, [str(wheel(tmp_path, "planted-package", "1.2"))])
        assert await sandbox.start((runner.sandbox.tier,)) == runner.tier
    finally:
        os.umask(before)
    code = """
import planted_package
print(planted_package.SAYS)
for name in ("litestar", "msgspec", "sqlalchemy"):
    try:
        print("could", __import__(name))
    except ImportError:
        print("no", name)
"""
    program = Program(language="python", files={"main.py": code}, entry="main.py")
    result = await sandbox.run(program, b"", 10)
    assert result.output.decode().splitlines() == [
        "planted 1.2",
        "no litestar",
        "no msgspec",
        "no sqlalchemy",
    ], result.log
    code = """
python3 -c 'import planted_package; print(planted_package.SAYS)'
node -e 'console.log("node")'
"""
    result = await sandbox.run(Program(language="bash", files={"m": code}, entry="m"), b"", 10)
    assert result.output == b"planted 1.2\nnode\n", result.log
