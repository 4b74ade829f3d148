"""Gives up the rights of this process, once all code is loaded: it keeps its two pipes, memory up
to a limit, at most one folder, and nothing else. Landlock and seccomp apply where the machine has
them; the process reports what it lacks.
"""

import ctypes
import os
import resource
import signal
import struct
import sys

from app.sandbox import landlock, seccomp

_NOBODY = 65534
_DEATH_SIGNAL, _NO_NEW_PRIVS = 1, 38
_MAX_DESCRIPTOR = 4096
_CAPABILITIES_VERSION = 0x20080522
# CAP_DAC_OVERRIDE: with it, root can use its folder under those of another user.
_ANY_FILE = 1 << 1
_OTHERS_READ = 0o005


def close_inherited() -> None:
    """Closes all descriptors but 0 to 2."""
    if sys.platform == "linux":
        landlock.close_inherited()
    else:
        os.closerange(3, _MAX_DESCRIPTOR)


def limit(name: str, value: int) -> None:
    """Lowers a limit of `resource`, such as RLIMIT_CPU."""
    number = getattr(resource, name)
    hard = resource.getrlimit(number)[1]
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(number, (bound, bound))


def limit_memory(size: int) -> None:
    if sys.platform == "linux":  # macOS refuses any limit of address space
        limit("RLIMIT_AS", size)


def restrict(parent: int, *, readable: str = "", writable: str = "") -> list[str]:
    """`parent` is the process that started this one; this process ends with it. It may read one
    folder, the working directory, or write one. Returns the limits that this machine does not have.
    """
    missing = ["a limit of memory", "landlock", "seccomp"]
    os.chdir(readable or "/")
    limit("RLIMIT_CORE", 0)
    if not writable:
        limit("RLIMIT_FSIZE", 0)
    if sys.platform == "linux":
        _check_threads()
        _control_process(_NO_NEW_PRIVS, 1)
        # Before the change of the user, who may not be able to open the folder by its path.
        missing = _restrict_files(readable, writable)
    _give_up_user(readable, writable)
    limit("RLIMIT_NPROC", 0)
    if sys.platform == "linux":
        # After the change of the user, which clears it.
        _control_process(_DEATH_SIGNAL, signal.SIGKILL)
        missing += _restrict_calls(readable, writable)
    if os.getppid() != parent:
        os._exit(0)
    return missing


def _check_threads() -> None:
    """Landlock and seccomp restrict the calling thread alone."""
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208  # avoids an import
        raise RuntimeError("a library has started a thread")


def _give_up_user(readable: str, writable: str) -> None:
    """Root becomes nobody, unless it needs its own files: then it keeps its id alone."""
    if os.geteuid() != 0:
        return
    os.setgroups([])
    if not writable and not (readable and _is_private(readable)):
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    elif sys.platform == "linux":
        _keep_capabilities(_ANY_FILE)


def _is_private(folder: str) -> bool:
    return os.stat(folder).st_mode & _OTHERS_READ != _OTHERS_READ  # noqa: PTH116  # avoids an import


def _keep_capabilities(capabilities: int) -> None:
    header = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    sets = struct.pack("=6I", capabilities, capabilities, 0, 0, 0, 0)
    if ctypes.CDLL(None).capset(header, sets) != 0:
        raise OSError("capset failed")


def _control_process(option: int, value: int) -> None:
    if ctypes.CDLL(None).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(f"prctl {option} failed")


def _restrict_files(readable: str, writable: str) -> list[str]:
    """Returns what is missing, and why."""
    try:
        if not landlock.version():
            return ["landlock: the kernel does not have it"]
        landlock.restrict_files([readable] if readable else [], [], writable)
    except OSError as error:
        return [f"landlock: {error}"]
    return []


def _restrict_calls(readable: str, writable: str) -> list[str]:
    """Returns what is missing, and why."""
    opens = bool(readable or writable)
    try:
        landlock.restrict_calls(seccomp.reader_program(opens=opens, writes=bool(writable)))
    except (OSError, seccomp.NoFilter) as error:
        return [f"seccomp: {error}"]
    return []
