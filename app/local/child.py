"""Becomes another program that ends with its parent, however the parent ends.

Run as a script, so that nothing happens between fork and exec in a process with threads:
`python child.py SIGNAL tie|namespace PROGRAM ARGUMENT…`. With `namespace` the program finds itself
in a user namespace where it is not root, for a program that refuses to be; its files stay ours.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_INNER_UID = 65534


def command(stop_signal: signal.Signals, mode: str, *program: object) -> list[str]:
    """The command line that runs a program this way."""
    own = [sys.executable, "-I", "-S", __file__, str(int(stop_signal)), mode]
    return own + [str(part) for part in program]


def _enter_namespace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{_INNER_UID} 0 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{_INNER_UID} 0 1", encoding="ascii")


def main(arguments: list[str]) -> None:
    stop_signal, mode, *program = arguments
    if mode == "namespace":
        _enter_namespace()
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
    os.execvp(program[0], program)  # noqa: S606  # becoming the program is the point


if __name__ == "__main__":
    main(sys.argv[1:])
