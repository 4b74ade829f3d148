"""Python packages for user code, which the operator installs from wheels before any run."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

from app.sandbox import runtimes

_SEPARATORS = re.compile(r"[-_.]+")


class CannotInstall(Exception):
    """The message is the installer's own."""


def normalize_name(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def installed(sandbox_dir: Path) -> dict[str, str]:
    """Returns the version of each installed package by its normalized name."""
    folder = runtimes.packages_dir(sandbox_dir)
    if not folder.is_dir():
        return {}
    packages: list[Distribution] = list(distributions(path=[str(folder)]))
    versions = {normalize_name(package.metadata["Name"]): package.version for package in packages}
    return dict(sorted(versions.items()))


def missing(sandbox_dir: Path, names: list[str]) -> list[str]:
    """Returns those of the names that are not installed."""
    if not names:
        return []
    versions = installed(sandbox_dir)
    return [name for name in names if normalize_name(name) not in versions]


def add(sandbox_dir: Path, requirements: list[str]) -> None:
    folder = runtimes.packages_dir(sandbox_dir)
    runtimes.make_readable_folder(sandbox_dir)
    runtimes.make_readable_folder(folder)
    # The installer would read a name like --index-url as an option.
    for requirement in requirements:
        if requirement.startswith("-"):
            raise CannotInstall(f"{requirement} is not the name of a package")
    options = ["--only-binary", ":all:", "--target", str(folder)]
    command = [*_installer(), *options, "--", *requirements]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode != 0:
        raise CannotInstall(result.stderr.strip()[-1000:])
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.is_dir() else 0))


def remove(sandbox_dir: Path, name: str) -> bool:
    """Removes a package and its files. Returns False when it is not installed."""
    folder = runtimes.packages_dir(sandbox_dir).resolve()
    for package in distributions(path=[str(folder)]):
        if normalize_name(package.metadata["Name"]) != normalize_name(name):
            continue
        for file in package.files or []:
            path = Path(str(package.locate_file(file))).resolve()
            if path.is_relative_to(folder):
                path.unlink(missing_ok=True)
        for path in folder.glob("*.dist-info"):
            if normalize_name(path.name.partition("-")[0]) == normalize_name(name):
                shutil.rmtree(path)
        return True
    return False


def _installer() -> list[str]:
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        return [str(uv), "pip", "install", "--quiet", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
