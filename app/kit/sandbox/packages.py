"""Python packages that the operator put within reach of user code: wheels, never at run time."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

from app.kit.sandbox import runtimes

_NOT_NAME = re.compile(r"[-_.]+")


class CannotInstall(Exception):
    """The installer's own words."""


def normal(name: str) -> str:
    return _NOT_NAME.sub("-", name).lower()


def installed(sandbox_dir: Path) -> dict[str, str]:
    """Names and versions."""
    folder = runtimes.packages_dir(sandbox_dir)
    if not folder.is_dir():
        return {}
    found: dict[str, str] = {}
    every: list[Distribution] = list(distributions(path=[str(folder)]))
    for one in every:
        found[normal(one.metadata["Name"])] = one.version
    return dict(sorted(found.items()))


def missing(sandbox_dir: Path, wanted: list[str]) -> list[str]:
    if not wanted:
        return []
    have = installed(sandbox_dir)
    return [name for name in wanted if normal(name) not in have]


def add(sandbox_dir: Path, wanted: list[str]) -> None:
    folder = runtimes.packages_dir(sandbox_dir)
    runtimes.open_folder(sandbox_dir)
    runtimes.open_folder(folder)
    # A name like --index-url would be an option.
    options = [name for name in wanted if name.startswith("-")]
    if options:
        raise CannotInstall(f"{options[0]} is no package")
    command = [*_installer(), "--only-binary", ":all:", "--target", str(folder), "--", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise CannotInstall(done.stderr.strip()[-1000:])
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.is_dir() else 0))


def remove(sandbox_dir: Path, name: str) -> bool:
    """With the files that came with it; False if it was not there."""
    folder = runtimes.packages_dir(sandbox_dir).resolve()
    for one in distributions(path=[str(folder)]):
        if normal(one.metadata["Name"]) != normal(name):
            continue
        for file in one.files or []:
            path = Path(str(one.locate_file(file))).resolve()
            if path.is_relative_to(folder):
                path.unlink(missing_ok=True)
        for path in folder.glob("*.dist-info"):
            if normal(path.name.partition("-")[0]) == normal(name):
                shutil.rmtree(path)
        return True
    return False


def _installer() -> list[str]:
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        return [str(uv), "pip", "install", "--quiet", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
