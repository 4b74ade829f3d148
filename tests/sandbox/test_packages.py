"""Packages that an operator puts within reach of user code, from wheels that lie on disk."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.kit.sandbox import packages
from app.kit.sandbox.box import Sandbox
from app.kit.sandbox.program import Program
from app.settings import Settings
from tests.packages import wheel
from tests.sandbox.cage import Cage


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A sandbox folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="parley-packages-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def test_nothing_is_installed_at_first(shelf: Path) -> None:
    assert packages.installed(shelf) == {}
    assert packages.missing(shelf, ["anything"]) == ["anything"]


def test_a_package_is_added_and_listed(shelf: Path, tmp_path: Path) -> None:
    packages.add(shelf, [str(wheel(tmp_path, "planted-package", "1.2"))])
    assert packages.installed(shelf) == {"planted-package": "1.2"}
    assert packages.missing(shelf, ["Planted_Package", "other"]) == ["other"]


def test_a_newer_version_takes_the_place_of_the_older(shelf: Path, tmp_path: Path) -> None:
    for version in ("1.2", "1.3"):
        packages.add(shelf, [str(wheel(tmp_path, "planted-package", version))])
    assert packages.installed(shelf) == {"planted-package": "1.3"}


def test_a_removed_package_leaves_nothing(shelf: Path, tmp_path: Path) -> None:
    packages.add(shelf, [str(wheel(tmp_path, "planted-package", "1.2"))])
    packages.add(shelf, [str(wheel(tmp_path, "planted-other", "2.0"))])
    assert packages.remove(shelf, "Planted.Package")
    assert packages.installed(shelf) == {"planted-other": "2.0"}
    assert not list(shelf.rglob("planted_package*"))
    assert list(shelf.rglob("planted_other.py"))


def test_what_is_not_there_is_not_removed(shelf: Path) -> None:
    assert not packages.remove(shelf, "planted-package")


def test_an_option_is_no_package(shelf: Path) -> None:
    with pytest.raises(packages.CannotInstall, match="--index-url"):
        packages.add(shelf, ["--index-url=http://127.0.0.1:9/", "planted"])


def test_sources_are_not_built(shelf: Path, tmp_path: Path) -> None:
    """Building runs what the package says, outside of any cage."""
    folder = tmp_path / "planted"
    folder.mkdir()
    ran = tmp_path / "ran"
    (folder / "setup.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    shutil.make_archive(str(tmp_path / "planted-1.0"), "gztar", tmp_path, "planted")
    for given in (folder, tmp_path / "planted-1.0.tar.gz"):
        with pytest.raises(packages.CannotInstall):
            packages.add(shelf, [str(given)])
    assert not ran.exists()
    assert packages.installed(shelf) == {}


async def test_user_code_imports_what_was_added_and_nothing_else(
    cage: Cage, shelf: Path, tmp_path: Path
) -> None:
    packages.add(shelf, [str(wheel(tmp_path, "planted-package", "1.2"))])
    sandbox = Sandbox(Settings(data_dir=shelf / "data", sandbox_dir=shelf))
    assert await sandbox.start((cage.sandbox.tier,)) == cage.tier
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
    ran = await sandbox.run(program, b"", 10)
    assert ran.output.decode().splitlines() == [
        "planted 1.2",
        "no litestar",
        "no msgspec",
        "no sqlalchemy",
    ], ran.log


async def test_a_careful_umask_does_not_lock_user_code_out(
    cage: Cage, shelf: Path, tmp_path: Path
) -> None:
    home = shelf / "sandbox"
    sandbox = Sandbox(Settings(data_dir=shelf / "data", sandbox_dir=home))
    before = os.umask(0o077)
    try:
        packages.add(home, [str(wheel(tmp_path, "planted-package", "1.2"))])
        assert await sandbox.start((cage.sandbox.tier,)) == cage.tier
    finally:
        os.umask(before)
    code = """
python3 -c 'import planted_package; print(planted_package.SAYS)'
node -e 'console.log("node")'
"""
    ran = await sandbox.run(Program(language="bash", files={"m": code}, entry="m"), b"", 10)
    assert ran.output == b"planted 1.2\nnode\n", ran.log
