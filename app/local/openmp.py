"""Provides OpenMP's runtime, which the model's library loads from the machine.

A machine with a compiler has `libgomp.so.1`. Elsewhere the copy in the wheel of pykdtree is used.
The loader reads its search path only when a program starts.
"""

import ctypes
import os
import sys
from pathlib import Path

from app.kit import wheels
from app.kit.wheels import PartUnavailable

_NAME = "libgomp.so.1"
_SEARCH_PATH = "LD_LIBRARY_PATH"


def ensure(folder: Path) -> None:
    """Returns if the library can be loaded; else restarts this process with a copy in its path.

    `folder` receives the link to the copy; no other user may have write access to it.
    """
    if sys.platform != "linux" or _is_loadable():
        return
    if str(folder) in os.environ.get(_SEARCH_PATH, "").split(":"):
        raise PartUnavailable(f"{_NAME} cannot be loaded (Debian: apt-get install libgomp1)")
    _link_library(folder)
    paths = [str(folder), *filter(None, [os.environ.get(_SEARCH_PATH)])]
    env = {**os.environ, _SEARCH_PATH: ":".join(paths)}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)  # noqa: S606


def _is_loadable() -> bool:
    try:
        ctypes.CDLL(_NAME)
    except OSError:
        return False
    return True


def _link_library(folder: Path) -> None:
    package = wheels.folder_of("pykdtree", part="model", instead="PARLEY_LOCAL_MODEL=off")
    for library in package.with_name("pykdtree.libs").glob("libgomp-*"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        link = folder / _NAME
        if link.resolve() != library.resolve():
            link.unlink(missing_ok=True)
            link.symlink_to(library)
        return
    raise PartUnavailable(
        "the wheel pykdtree contains no libgomp (Debian: apt-get install libgomp1)"
    )
