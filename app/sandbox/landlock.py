"""The weaker tier, for machines without bubblewrap: Landlock, seccomp and a separate user id.

The copied Python runs this module as a script, so it imports only the standard library. Its first
argument is its configuration as JSON. It forks a child, which restricts itself and then executes
the user's code. The script remains unrestricted as the parent of every process that the code starts
and leaves behind. Code can write no file at all: nothing would bound the disk space of a run.
"""

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from contextlib import suppress

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVS, _SET_SECCOMP, _DEATH_SIGNAL, _SUBREAPER = 38, 22, 1, 36
_FILTER = 2
_LOG = 2

_EXECUTE, _READ_FILE, _READ_DIR, _WRITE_FILE = 1, 4, 8, 2
_REMOVE_FILE, _MAKE_FILE, _TRUNCATE = 1 << 5, 1 << 8, 1 << 14
# How many file system rights each version of Landlock knows.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS = 16
_NET_RIGHTS = 3
_SCOPES = 3
_SCOPES_SINCE, _NET_SINCE = 6, 4

_libc = ctypes.CDLL(None, use_errno=True)


def _raise_on_error(result: int, call: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), call)
    return result


def version() -> int:
    """Returns the version of the kernel's Landlock, 0 for none."""
    if sys.platform != "linux":
        return 0
    abi: int = _libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    return max(0, abi)


def restrict_files(readable: list[str], devices: list[str], writable: str = "") -> None:
    """`writable` is a folder whose files may be created, changed and deleted."""
    abi = version()
    handled = (1 << _RIGHTS.get(abi, _ALL_RIGHTS)) - 1
    net = _NET_RIGHTS if abi >= _NET_SINCE else 0
    scoped = _SCOPES if abi >= _SCOPES_SINCE else 0
    attributes = struct.pack("=QQQ", handled, net, scoped)
    size = 24 if abi >= _SCOPES_SINCE else 16 if abi >= _NET_SINCE else 8
    rules = _raise_on_error(
        _libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0), "landlock"
    )
    for path in readable:
        _allow(rules, path, _EXECUTE | _READ_FILE | _READ_DIR)
    for path in devices:
        _allow(rules, path, _READ_FILE | _WRITE_FILE)
    if writable:
        rights = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | _TRUNCATE
        _allow(rules, writable, rights & handled)
    _raise_on_error(_libc.syscall(_RESTRICT, rules, 0), "landlock")
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112  # avoids an import: this starts with every run
            rights &= ~_READ_DIR
        rule = struct.pack("=Qi", rights, descriptor)
        _raise_on_error(_libc.syscall(_ADD, rules, _PATH_BENEATH, rule, 0), path)
    finally:
        os.close(descriptor)


def restrict_calls(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    filter_ = Program(len(program) // 8, program)
    _raise_on_error(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(filter_), 0, 0), "seccomp")


def restrict_process(config: dict) -> None:  # type: ignore[type-arg]
    """Gives up rights in an order in which each step leaves those that the next one needs."""
    uid = config["uid"]
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _raise_on_error(_libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "death signal")
    for name, value in config["limits"].items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))
    _raise_on_error(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    restrict_files(config["readable"], config["devices"])
    if config["result_on_fd3"]:
        os.dup2(1, 3)
        os.dup2(2, 1)
    os.chdir(config["code"])
    restrict_calls(bytes.fromhex(config["seccomp"]))


def wait_for_child(child: int) -> None:
    """Waits until the child ends, then exits with its code as bubblewrap reports it."""
    null = os.open("/dev/null", os.O_RDWR)
    for pipe in (0, 1, 2):
        os.dup2(null, pipe)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def close_inherited() -> None:
    """Closes all descriptors but 0 to 2: the worker's event loop leaves inheritable ones open."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # avoids an import
        if int(name) > _LOG:
            with suppress(OSError):
                os.close(int(name))


def main() -> None:
    close_inherited()
    config = json.loads(sys.argv[1])
    # When the worker is killed, the whole process group ends.
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    _raise_on_error(_libc.prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0), "death signal")
    _raise_on_error(_libc.prctl(_SUBREAPER, 1, 0, 0, 0), "subreaper")
    os.nice(config["nice"])
    child = os.fork()
    if child:
        wait_for_child(child)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    restrict_process(config)
    os.execve(config["command"][0], config["command"], config["environment"])  # noqa: S606


if __name__ == "__main__":
    main()
