"""Script that executes another program and ends it when the parent process ends.

It is a script because a process with threads must run no code between fork and exec:
`python child.py PARENT SIGNAL MODE PROGRAM ARGUMENT...`. The mode `tie` only ties the program to
its parent. Two modes are for a program that refuses to run as root or as a user without a name:
`namespace` runs it in a user namespace under another uid that owns the same files, and `user:NAME`
runs it as that user.
"""

import ctypes
import os
import pwd
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_INNER_UID = 65534
_WATCH_SECONDS = 0.5


def command(stop_signal: signal.Signals, mode: str, *program: object) -> list[str]:
    """Returns the command that runs a program through this script, tied to this process."""
    launcher = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(int(stop_signal)), mode]
    return launcher + [str(part) for part in program]


def _enter_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{_INNER_UID} {uid} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{_INNER_UID} {gid} 1", encoding="ascii")


def _switch_user(name: str) -> None:
    user = pwd.getpwnam(name)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def _tie_to_parent(parent: int, stop_signal: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, stop_signal, 0, 0, 0)
    else:
        _watch_parent(parent, stop_signal)
    if os.getppid() != parent:
        sys.exit("the parent ended before its child started")


def _watch_parent(parent: int, stop_signal: int) -> None:
    """Forks a process that watches the parent, for kernels without a parent-death signal."""
    program = os.getpid()
    if os.fork() == 0:
        while os.getppid() == program and _is_running(parent):
            time.sleep(_WATCH_SECONDS)
        if os.getppid() == program:
            os.kill(program, stop_signal)
        os._exit(0)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def main(arguments: list[str]) -> None:
    parent, stop_signal, mode, *program = arguments
    if mode == "namespace":
        _enter_namespace()
    elif mode.startswith("user:"):
        _switch_user(mode.removeprefix("user:"))
    os.setsid()
    _tie_to_parent(int(parent), int(stop_signal))
    os.execvp(program[0], program)  # noqa: S606  # replaces this process on purpose


if __name__ == "__main__":
    main(sys.argv[1:])
