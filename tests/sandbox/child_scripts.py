"""Scripts that tests run in child processes."""

from contextlib import suppress
from pathlib import Path
from textwrap import indent

import psutil


def write_script(folder: Path, code: str) -> Path:
    """The code runs in a process without rights."""
    path = folder / "script.py"
    path.write_text(f"def main():\n{indent(code, '    ')}\n", encoding="utf-8")
    return path


def is_running(script: Path) -> bool:
    """True while a child of this process runs the script."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if str(script) in child.cmdline():
                return True
    return False
