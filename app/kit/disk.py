"""Makes written files durable across a crash of the machine."""

import os
from pathlib import Path


def fsync(path: Path) -> None:
    """Returns once the file and its folder's entry are on disk."""
    for target in (path, path.parent):
        fsync_one(target)


def fsync_one(path: Path) -> None:
    """Like `fsync`, for a file or a folder without the entry of its folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
