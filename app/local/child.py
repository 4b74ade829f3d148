"""Becomes another program that ends with its parent, however the parent ends.

Run as a script, so that nothing happens between fork and exec in a process with threads:
`python child.py SIGNAL MODE PROGRAM ARGUMENT…`. The mode `tie` only ties it to its parent. Two more
are for a program that refuses to be root: `namespace` puts it into a user namespace where it is
somebody else while its files stay ours, and `user:NAME` makes it that user.
"""

import ctypes
import os
import pwd
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


def _become(name: str) -> None:
    user = pwd.getpwnam(name)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def main(arguments: list[str]) -> None:
    stop_signal, mode, *program = arguments
    if mode == "namespace":
        _enter_namespace()
    elif mode.startswith("user:"):
        _become(mode.removeprefix("user:"))
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
    os.execvp(program[0], program)  # noqa: S606  # becoming the program is the point


if __name__ == "__main__":
    main(sys.argv[1:])
