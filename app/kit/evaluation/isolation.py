"""Gives up the rights of this process, once all code is loaded: it keeps its two pipes, memory up
to a limit, and nothing else. Landlock and seccomp apply where the machine has them; the process
reports what it lacks.
"""

import ctypes
import os
import resource
import signal
import sys

from app.kit.sandbox import landlock, seccomp

_NOBODY = 65534
_DEATH_SIGNAL, _NO_NEW_PRIVS = 1, 38
_OPEN_FILES = 16
_MAX_DESCRIPTOR = 4096


def close_inherited() -> None:
    """Closes all descriptors but 0 to 2."""
    if sys.platform == "linux":
        landlock.close_inherited()
    else:
        os.closerange(3, _MAX_DESCRIPTOR)


def restrict(memory_bytes: int, parent: int) -> list[str]:
    """`parent` is the process that started this one; this process ends with it. Returns the limits
    that this machine does not have.
    """
    missing = []
    os.chdir("/")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NPROC", 0)
    if sys.platform == "linux":  # macOS refuses any limit of address space
        _limit("RLIMIT_AS", memory_bytes)
        # After the change of the user, which clears it.
        _control_process(_DEATH_SIGNAL, signal.SIGKILL)
        missing = _restrict_calls()
    else:
        missing = ["a limit of memory", "landlock", "seccomp"]
    _limit("RLIMIT_NOFILE", _OPEN_FILES)
    if os.getppid() != parent:
        os._exit(0)
    return missing


def _limit(name: str, value: int) -> None:
    number = getattr(resource, name)
    hard = resource.getrlimit(number)[1]
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(number, (bound, bound))


def _control_process(option: int, value: int) -> None:
    if ctypes.CDLL(None).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(f"prctl {option} failed")


def _restrict_calls() -> list[str]:
    """Returns what is missing, and why."""
    missing = []
    _control_process(_NO_NEW_PRIVS, 1)
    try:
        if landlock.version():
            landlock.restrict_files([], [])
        else:
            missing.append("landlock: the kernel does not have it")
    except OSError as error:
        missing.append(f"landlock: {error}")
    try:
        landlock.restrict_calls(seccomp.program(namespaces=False))
    except (OSError, seccomp.NoFilter) as error:
        missing.append(f"seccomp: {error}")
    return missing
