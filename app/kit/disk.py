"""Making sure that what was written survives the machine, not only the process."""

import os
from pathlib import Path


def fsync(path: Path) -> None:
    """The file and the folder that names it reach the disk before this returns."""
    for target in (path, path.parent):
        opened = os.open(target, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
