"""The seccomp filter: its system call numbers, its decisions, and that the kernel applies them.

The tests interpret the filter program, so they cover both processors on either machine.
"""

import ctypes
import errno
import json
import os
import platform
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.sandbox import call_groups, seccomp
from tests.processes import ROOT

ARCHS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OTHER_ARCHS = {"i386": 0x40000003, "arm": 0x40000028, "riscv64": 0xC00000F3}
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
PERMISSION, NO_SUCH_CALL = REFUSE | errno.EPERM, REFUSE | errno.ENOSYS
# From this number on, a call has the same number on every processor.
SAME_EVERYWHERE = 424
NEWEST = 600
HEADERS = [
    Path("/usr/include/asm-generic/unistd.h"),
    *Path("/usr/include").glob(f"{platform.machine()}-linux-*/asm/unistd_64.h"),
]
if platform.machine() == "x86_64":
    # The generic numbers are those of newer processors.
    del HEADERS[0]
# The number of calls, and the first number of those that each processor defines.
NO_CALLS = {"syscalls", "arch_specific_syscall"}
# Calls that only processors with 32 bits have.
NARROW = range(403, SAME_EVERYWHERE)

# Without and with namespaces of its own.
CASES = [(machine, namespaces) for machine in ARCHS for namespaces in (True, False)]


class Kernel:
    """The system call tables of libseccomp, as a reference that is independent of Parley."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL("libseccomp.so.2")
        except OSError:
            pytest.fail("libseccomp is missing (Debian: apt-get install libseccomp2)")
        self._resolve = library.seccomp_syscall_resolve_name_arch
        self._resolve.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
        self._name = library.seccomp_syscall_resolve_num_arch
        self._name.argtypes, self._name.restype = [ctypes.c_uint32, ctypes.c_int], ctypes.c_char_p

    def find_number(self, machine: str, name: str) -> int | None:
        """Returns None if the processor has no such call, -1 if the library does not know it."""
        number: int = self._resolve(ARCHS[machine], name.encode())
        return number if number >= -1 else None

    def list_calls(self, machine: str) -> dict[int, str]:
        """Returns the names by number."""
        names = {number: self._name(ARCHS[machine], number) for number in range(NEWEST)}
        return {number: name.decode() for number, name in names.items() if name is not None}


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel()


def decide(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Returns the filter's decision on a call, interpreted as the kernel does."""
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, arch, 0, *words)
    accumulator = position = 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("=HBBI", program, 8 * position)
        position += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, value)[0]
            case 0x54:
                accumulator &= value
            case 0x15:
                position += if_true if accumulator == value else if_false
            case 0x35:
                position += if_true if accumulator >= value else if_false
            case 0x45:
                position += if_true if accumulator & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.mark.parametrize("machine", ARCHS)
def test_every_number_is_the_one_of_its_processor(kernel: Kernel, machine: str) -> None:
    numbers, other = seccomp.known_calls(machine), seccomp.known_calls(_other_machine(machine))
    for name in numbers | other:
        expected = kernel.find_number(machine, name)
        if expected == -1:
            # Newer than this libseccomp.
            assert numbers[name] == other[name] >= SAME_EVERYWHERE, name
        else:
            assert numbers.get(name) == expected, name


@pytest.mark.parametrize("machine", ARCHS)
def test_every_call_of_the_kernel_is_in_the_table(kernel: Kernel, machine: str) -> None:
    """A call that libseccomp or the headers know and the table does not needs a group."""
    numbers = set(seccomp.known_calls(machine).values())
    assert {n: name for n, name in kernel.list_calls(machine).items() if n not in numbers} == {}


def test_the_table_has_the_calls_of_the_system_headers() -> None:
    """The headers are those of this processor; a machine without a compiler has none."""
    found = [path for path in HEADERS if path.exists()]
    text = "\n".join(path.read_text() for path in found)
    defined = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)\b", text)
    numbers = seccomp.known_calls(platform.machine())
    unknown = {
        name: int(number)
        for name, number in defined
        if int(number) not in {*numbers.values(), *NARROW} and name not in NO_CALLS
    }
    assert unknown == {}


def test_every_call_is_in_one_group_and_each_group_says_why() -> None:
    names = [name for group in call_groups.GROUPS.values() for name in group.names.split()]
    assert sorted(names) == sorted({name for m in ARCHS for name in seccomp.known_calls(m)})
    assert all(len(group.reason) > 20 for group in call_groups.GROUPS.values())


def _other_machine(machine: str) -> str:
    return next(name for name in ARCHS if name != machine)


def test_each_call_gets_the_answer_of_its_group() -> None:
    for machine, namespaces in CASES:
        program = seccomp.program(namespaces=namespaces, machine=machine)
        answers = call_groups.answers(namespaces=namespaces)
        names = {number: name for name, number in seccomp.known_calls(machine).items()}
        for number in range(NEWEST):
            decision = decide(program, ARCHS[machine], number, 1, 0)
            name = names.get(number)
            if name is None:
                assert decision == NO_SUCH_CALL, (machine, namespaces, number)
            elif name not in call_groups.DECIDED:
                error = answers[name]
                expected = ALLOW if error is None else REFUSE | error
                assert decision == expected, (machine, namespaces, name)


def test_calls_of_newer_kernels_do_not_exist() -> None:
    for machine, namespaces in CASES:
        program = seccomp.program(namespaces=namespaces, machine=machine)
        newest = max(seccomp.known_calls(machine).values())
        for number in (newest + 1, newest + 2, 1000, 0x3FFFFFFF):
            decision = decide(program, ARCHS[machine], number)
            assert decision == NO_SUCH_CALL, (machine, namespaces, number)


@pytest.mark.parametrize("machine", ARCHS)
def test_what_ordinary_programs_do_is_allowed(kernel: Kernel, machine: str) -> None:
    program = seccomp.program(namespaces=False, machine=machine)
    for name in (
        *("read", "write", "openat", "close", "execve", "exit_group", "futex", "wait4", "brk"),
        *("munmap", "mprotect", "rt_sigaction", "pipe2", "dup3", "epoll_ctl", "getrandom", "kill"),
    ):
        number = kernel.find_number(machine, name)
        assert number is not None
        assert decide(program, ARCHS[machine], number) == ALLOW, name


_DECIDED_BY_ARGUMENTS: list[tuple[str, tuple[int, ...], int]] = [
    # A thread, a child, and the seven kinds of new namespaces.
    ("clone", (0x3D0F00,), ALLOW),
    ("clone", (17,), ALLOW),
    *[
        ("clone", (17 | flag,), PERMISSION)
        for flag in (
            *(0x10000000, 0x00020000, 0x20000000, 0x40000000),
            *(0x04000000, 0x08000000, 0x02000000),
        )
    ],
    # Private, of a file, shared without one, and of reserved pages.
    ("mmap", (0, 4096, 3, 0x22), ALLOW),
    ("mmap", (0, 4096, 3, 0x01), ALLOW),
    ("mmap", (0, 4096, 3, 0x21), PERMISSION),
    ("mmap", (0, 4096, 3, 0x4021), PERMISSION),
    ("mmap", (0, 4096, 3, 0x40022), PERMISSION),
    # Memory that the kernel compares with that of others, or writes to disk.
    ("madvise", (0, 4096, 4), ALLOW),
    ("madvise", (0, 4096, 12), PERMISSION),
    ("madvise", (0, 4096, 21), PERMISSION),
    ("prlimit64", (0, 7), ALLOW),
    ("prlimit64", (1, 7), PERMISSION),
    # A stream between two ends is a pipe; a datagram goes anywhere.
    ("socketpair", (1, 1), ALLOW),
    ("socketpair", (1, 0x80801), ALLOW),
    ("socketpair", (1, 2), PERMISSION),
    ("socketpair", (1, 3), PERMISSION),
    ("socketpair", (2, 1), PERMISSION),
    # Duplicates and flags; the size of a pipe, a lease, a watch.
    *[("fcntl", (3, command), ALLOW) for command in (0, 1, 2, 3, 4, 5, 1030, 1032)],
    *[("fcntl", (3, command), PERMISSION) for command in (1031, 1024, 1026)],
    # Terminals and whether a read waits; the network interfaces.
    *[("ioctl", (3, request), ALLOW) for request in (0x5401, 0x5413, 0x5421, 0x541B, 0x8A00)],
    *[("ioctl", (3, request), PERMISSION) for request in (0x8900, 0x8912, 0x8915, 0x89FF)],
    # Name, death signal, no new privileges.
    *[("prctl", (option,), ALLOW) for option in (1, 15, 38, 76)],
    # PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_MM, PR_SCHED_CORE, PR_SET_VMA, and unknown ones.
    *[("prctl", (option,), PERMISSION) for option in (4, 22, 35, 62, 0x53564D41, 0, 1000)],
]


def test_some_calls_are_decided_by_their_arguments() -> None:
    for machine, namespaces in CASES:
        program = seccomp.program(namespaces=namespaces, machine=machine)
        for name, arguments, expected in _DECIDED_BY_ARGUMENTS:
            number = seccomp.known_calls(machine)[name]
            decision = decide(program, ARCHS[machine], number, *arguments)
            assert decision == expected, (machine, namespaces, name, arguments)


@pytest.mark.parametrize("machine", ARCHS)
def test_locks_on_files_need_files_of_the_runs_own(machine: str) -> None:
    """Without namespaces no file is writable, and locks on others are memory of the kernel."""
    number = seccomp.known_calls(machine)["fcntl"]
    for namespaces, expected in ((True, ALLOW), (False, PERMISSION)):
        program = seccomp.program(namespaces=namespaces, machine=machine)
        for command in (6, 7, 37, 38):
            assert decide(program, ARCHS[machine], number, 3, command) == expected


@pytest.mark.parametrize("machine", ARCHS)
def test_a_reader_of_foreign_bytes_starts_and_opens_nothing(
    machine: str, subtests: pytest.Subtests
) -> None:
    no_error = REFUSE  # the call returns 0 without being made
    for name, arguments, nothing, folder, own_files in (
        ("read", (0,), ALLOW, ALLOW, ALLOW),
        ("mmap", (0, 4096, 3, 0x22), ALLOW, ALLOW, ALLOW),
        ("openat", (), PERMISSION, ALLOW, ALLOW),
        ("unlinkat", (), PERMISSION, ALLOW, ALLOW),
        ("fcntl", (3, 6), PERMISSION, PERMISSION, ALLOW),
        ("fsync", (3,), no_error, no_error, ALLOW),
        ("fchmod", (3,), PERMISSION, PERMISSION, PERMISSION),
        *(
            (name, (), PERMISSION, PERMISSION, PERMISSION)
            for name in ("execve", "execveat", "kill", "tgkill", "rt_sigqueueinfo", "socket")
        ),
        ("clone", (0x3D0F00,), PERMISSION, PERMISSION, PERMISSION),
        ("clone", (17,), PERMISSION, PERMISSION, PERMISSION),
        ("socketpair", (1, 1), PERMISSION, PERMISSION, PERMISSION),
    ):
        number = seccomp.known_calls(machine)[name]
        for opens, writes, expected in (
            (False, False, nothing),
            (True, False, folder),
            (True, True, own_files),
        ):
            with subtests.test(name=name, opens=opens, writes=writes):
                program = seccomp.reader_program(opens=opens, writes=writes, machine=machine)
                assert decide(program, ARCHS[machine], number, *arguments) == expected


@pytest.mark.parametrize("machine", ARCHS)
def test_calls_of_another_processor_end_the_process(machine: str) -> None:
    """The same number may be another call on another processor."""
    program = seccomp.program(namespaces=True, machine=machine)
    others = {**ARCHS, **OTHER_ARCHS}
    del others[machine]
    for arch in others.values():
        assert {decide(program, arch, number) for number in range(NEWEST)} == {KILL}


def test_x32_calls_end_the_process() -> None:
    program = seccomp.program(namespaces=True, machine="x86_64")
    assert decide(program, ARCHS["x86_64"], 0x40000000 | 41) == KILL


def test_there_is_no_filter_for_an_unknown_processor() -> None:
    with pytest.raises(seccomp.NoFilter, match="sparc64"):
        seccomp.program(namespaces=True, machine="sparc64")


# The kernel itself refuses many calls of an ordinary user with EPERM. So a child process loads the
# filter with another error code and makes every refused call.
_OTHER_ERROR = errno.ENOTNAM
_CALLER = """
import ctypes, json, os, sys
from app.sandbox import landlock
libc = ctypes.CDLL(None, use_errno=True)
uid, code, numbers = json.loads(sys.argv[1])
if uid:
    os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
assert libc.prctl(38, 1, 0, 0, 0) == 0
landlock.restrict_calls(bytes.fromhex(code))
errors = {}
for name, number in numbers.items():
    ctypes.set_errno(0)
    libc.syscall(number, *[ctypes.c_long(0)] * 6)
    errors[name] = ctypes.get_errno()
os.write(1, json.dumps(errors).encode())
os._exit(0)
"""


def _with_another_error(program: bytes) -> bytes:
    def instructions() -> Iterator[bytes]:
        for at in range(0, len(program), 8):
            code, if_true, if_false, value = struct.unpack_from("=HBBI", program, at)
            is_refusal = code == 0x06 and value & 0xFFFF0000 == REFUSE
            new_value = REFUSE | _OTHER_ERROR if is_refusal else value
            yield struct.pack("=HBBI", code, if_true, if_false, new_value)

    return b"".join(instructions())


@pytest.mark.parametrize("namespaces", [True, False])
def test_the_kernel_refuses_every_call_of_the_table_on_this_processor(
    namespaces: bool,  # noqa: FBT001
) -> None:
    numbers = seccomp.refused_calls(platform.machine(), namespaces=namespaces)
    program = _with_another_error(seccomp.program(namespaces=namespaces))
    arguments = json.dumps([65534 if os.geteuid() == 0 else 0, program.hex(), numbers])
    completed = subprocess.run(
        [sys.executable, "-c", _CALLER, arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout) == dict.fromkeys(numbers, _OTHER_ERROR)
