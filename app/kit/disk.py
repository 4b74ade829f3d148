"""Makes written files durable across a crash of the machine."""

import os
from pathlib import Path


def fsync(path: Path) -> None:
    """Returns once the file and its folder's entry are on disk."""
    for target in (path, path.parent):
        descriptor = os.open(target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
