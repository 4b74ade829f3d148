"""The seccomp filter: its system call numbers, its decisions, and that the kernel applies them.

The tests interpret the filter program, so they cover both processors on either machine.
"""

import ctypes
import errno
import json
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.kit.sandbox import seccomp
from tests.processes import ROOT

ARCHS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OTHER_ARCHS = {"i386": 0x40000003, "arm": 0x40000028, "riscv64": 0xC00000F3}
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
PERMISSION, NO_SUCH_CALL = REFUSE | errno.EPERM, REFUSE | errno.ENOSYS
# From this number on, a call has the same number on every processor.
SAME_EVERYWHERE = 424
NEWEST = 480

CASES = [
    pytest.param(machine, namespaces, id=f"{machine}-{'with' if namespaces else 'without'}")
    for machine in ARCHS
    for namespaces in (True, False)
]


class Kernel:
    """The system call tables of libseccomp, as a reference that is independent of Parley."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL("libseccomp.so.2")
        except OSError:
            pytest.fail("libseccomp is missing (Debian: apt-get install libseccomp2)")
        self._resolve = library.seccomp_syscall_resolve_name_arch
        self._resolve.argtypes = [ctypes.c_uint32, ctypes.c_char_p]

    def find_number(self, machine: str, name: str) -> int | None:
        """Returns None if the processor has no such call, -1 if the library does not know it."""
        number: int = self._resolve(ARCHS[machine], name.encode())
        return number if number >= -1 else None


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


def _other_machine(machine: str) -> str:
    return next(name for name in ARCHS if name != machine)


@pytest.mark.parametrize(("machine", "namespaces"), CASES)
def test_the_calls_of_the_table_are_refused_and_no_others(machine: str, namespaces: bool) -> None:  # noqa: FBT001
    program = seccomp.program(namespaces=namespaces, machine=machine)
    table = seccomp.refused_calls(machine, namespaces=namespaces)
    decisions = {number: decide(program, ARCHS[machine], number, 0, 0) for number in range(NEWEST)}
    refused = {number for number, decision in decisions.items() if decision == PERMISSION}
    by_arguments = {seccomp.known_calls(machine)["socketpair"]}
    assert refused == set(table.values()) | by_arguments
    clone3 = seccomp.known_calls(machine)["clone3"]
    assert {n for n, decision in decisions.items() if decision == NO_SUCH_CALL} == {clone3}
    assert set(decisions.values()) == {ALLOW, PERMISSION, NO_SUCH_CALL}


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


@pytest.mark.parametrize("machine", ARCHS)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
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
        # Private, of a file, and shared without one.
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 3, 0x01), ALLOW),
        ("mmap", (0, 4096, 3, 0x21), PERMISSION),
        ("mmap", (0, 4096, 3, 0x4021), PERMISSION),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (1, 7), PERMISSION),
        # A stream between two ends is a pipe; a datagram goes anywhere.
        ("socketpair", (1, 1), ALLOW),
        ("socketpair", (1, 0x80801), ALLOW),
        ("socketpair", (1, 2), PERMISSION),
        ("socketpair", (1, 3), PERMISSION),
        ("socketpair", (2, 1), PERMISSION),
    ],
)
def test_some_calls_are_decided_by_their_arguments(
    machine: str, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    number = seccomp.known_calls(machine)[name]
    for namespaces in (True, False):
        program = seccomp.program(namespaces=namespaces, machine=machine)
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
from app.kit.sandbox import landlock
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
            new_value = REFUSE | _OTHER_ERROR if (code, value) == (0x06, PERMISSION) else value
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
