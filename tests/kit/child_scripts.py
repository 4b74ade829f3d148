"""Scripts that tests run in child processes."""

from contextlib import suppress
from pathlib import Path

import psutil


def write_script(folder: Path, code: str) -> Path:
    path = folder / "script.py"
    path.write_text(code, encoding="utf-8")
    return path


def is_running(script: Path) -> bool:
    """True while a child of this process runs the script."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if str(script) in child.cmdline():
                return True
    return False
