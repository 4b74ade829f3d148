"""The weaker tier, for machines without bubblewrap: Landlock, seccomp and another user.

Run as a program by a Python of its own: it takes its orders as JSON in its first argument and
starts a child that cages itself and becomes the user's code. It stays outside as the parent of all
that the code starts and leaves behind, so that nothing gets out of sight. It imports nothing but
the standard library. There is no place to write at all: without a file system of its own, nothing
would bound what a run leaves on disk.
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
# How many file system rights each version of Landlock knows.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS = 16
_NET_RIGHTS = 3
_SCOPES = 3
_SCOPES_SINCE, _NET_SINCE = 6, 4

_libc = ctypes.CDLL(None, use_errno=True)


def _must(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def version() -> int:
    """0 where the kernel has no Landlock."""
    if sys.platform != "linux":
        return 0
    found: int = _libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    return max(0, found)


def restrict_files(readable: list[str], devices: list[str]) -> None:
    known = version()
    handled = (1 << _RIGHTS.get(known, _ALL_RIGHTS)) - 1
    net = _NET_RIGHTS if known >= _NET_SINCE else 0
    scoped = _SCOPES if known >= _SCOPES_SINCE else 0
    attributes = struct.pack("=QQQ", handled, net, scoped)
    size = 24 if known >= _SCOPES_SINCE else 16 if known >= _NET_SINCE else 8
    rules = _must(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0), "landlock")
    for path in readable:
        _allow(rules, path, _EXECUTE | _READ_FILE | _READ_DIR)
    for path in devices:
        _allow(rules, path, _READ_FILE | _WRITE_FILE)
    _must(_libc.syscall(_RESTRICT, rules, 0), "landlock")
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112  # few imports: this starts with every run
            rights &= ~_READ_DIR
        rule = struct.pack("=Qi", rights, place)
        _must(_libc.syscall(_ADD, rules, _PATH_BENEATH, rule, 0), path)
    finally:
        os.close(place)


def restrict_calls(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    filter_ = Program(len(program) // 8, program)
    _must(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(filter_), 0, 0), "seccomp")


def become(orders: dict) -> None:  # type: ignore[type-arg]
    """In this order: each step leaves what the next one needs."""
    uid = orders["uid"]
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _must(_libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "death signal")
    for name, value in orders["limits"].items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))
    _must(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    restrict_files(orders["readable"], orders["devices"])
    if orders["apart"]:
        os.dup2(1, 3)
        os.dup2(2, 1)
    os.chdir(orders["code"])
    restrict_calls(bytes.fromhex(orders["seccomp"]))


def guard(child: int) -> None:
    """Until the child ends; the exit code is as bubblewrap gives it."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for pipe in (0, 1, 2):
        os.dup2(nothing, pipe)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def close_inherited() -> None:
    """All but input, output and log: the worker's event loop leaves open what is inheritable."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # few imports
        if int(name) > _LOG:
            with suppress(OSError):
                os.close(int(name))


def main() -> None:
    close_inherited()
    orders = json.loads(sys.argv[1])
    # Should the worker be killed, nobody of the group outlives it.
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    _must(_libc.prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0), "death signal")
    _must(_libc.prctl(_SUBREAPER, 1, 0, 0, 0), "subreaper")
    child = os.fork()
    if child:
        guard(child)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    become(orders)
    os.execve(orders["command"][0], orders["command"], orders["environment"])  # noqa: S606


if __name__ == "__main__":
    main()
