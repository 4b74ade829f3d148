"""Builds the console with Node, once for its sources: `python -m app.web.console_build [--dev]`.

A checkout does so when it is set up, a wheel carries the result. Without the packages of npm,
everything else works, and `/console` says what is missing.
"""

import fcntl
import hashlib
import sys
from pathlib import Path
from typing import Final

from app.kit import node

SOURCE: Final = Path(__file__).parent / "console"
DIST: Final = SOURCE / "dist"
_STATIC: Final = Path(__file__).parent / "static"
_STAMP: Final = ".sources"
# Why the last build failed, in one line.
REASON: Final = SOURCE / ".unavailable"


def build_once(*, dev: bool) -> bool:
    """Returns False if it was built before. `dev` also installs the packages that checks need.
    Raises NodeError.
    """
    with (SOURCE / "package.json").open("rb") as lock:
        # Until the file is closed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        checksum = _checksum()
        stamp = DIST / _STAMP
        if dev:
            node.install(SOURCE)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == checksum:
            return False
        if not dev:
            node.install(SOURCE, dev=False)
        node.run(SOURCE / "build.mjs")
        stamp.write_text(checksum, encoding="utf-8")
        REASON.unlink(missing_ok=True)
        return True


def _checksum() -> str:
    files = [SOURCE / "package-lock.json", SOURCE / "build.mjs"]
    for folder in (SOURCE / "src", _STATIC / "shared", _STATIC / "pages"):
        files += sorted(path for path in folder.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(SOURCE.parent)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _summarize(output: str) -> str:
    """Returns the line of the output that says what is wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and "complete log" not in line]
    return (errors or lines or ["unknown reason"])[-1][:300]


def main(arguments: list[str]) -> None:
    if not SOURCE.is_dir():
        return
    try:
        if build_once(dev="--dev" in arguments):
            sys.stdout.write("parley: built the console\n")
    except (node.NodeError, OSError) as problem:
        reason = _summarize(str(problem))
        REASON.write_text(reason, encoding="utf-8")
        sys.stderr.write(f"parley: the console could not be built: {reason}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
