"""The filter of system calls for user code: a seccomp program, assembled without a library.

`call_groups.py` has the answer to each call, and why. Here are those that depend on arguments.
"""

import errno
import os
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from app.sandbox import call_groups, calls

NoFilter = calls.NoFilter

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT, _AND, _RETURN = (
    0x20,
    0x15,
    0x35,
    0x45,
    0x54,
    0x06,
)
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_REFUSE = 0x00050000
_NUMBER, _ARCH, _FIRST_ARG = 0, 4, 16
_X32 = 0x40000000
_ARCHS: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# The CLONE_NEW* flags of clone and unshare, which create namespaces.
_NEW_NAMESPACES = 0x7E020000
# MAP_SHARED | MAP_ANONYMOUS: memory that no limit counts.
_SHARED_ANONYMOUS = 0x21
_OWN_PID, _AF_UNIX = 0, 1
# A bit of SOCK_DGRAM and SOCK_RAW: such a socket, even one of a pair, sends to any address.
_DATAGRAM_BIT = 2
# The SIOC* requests, which any socket answers: the network interfaces of the machine.
_REQUEST_GROUP, _SOCKET_REQUESTS = 0xFFFFFF00, 0x8900
# F_SETPIPE_SZ enlarges a buffer beyond what a descriptor counts for; F_SETLEASE and F_NOTIFY are
# watches.
_COSTLY_COMMANDS: Final = (1031, 1024, 1026)
# F_SETLK, F_SETLKW and those of open files. Any number of locks fits on a file that can be read.
# SQLite needs them: with namespaces for files in /tmp, where the supervisor counts them, and for
# the files of a tenant.
_LOCK_COMMANDS: Final = (6, 7, 37, 38)
# MAP_HUGETLB takes from pages that the machine has reserved for others.
_RESERVED_PAGES = 0x40000
# MADV_MERGEABLE makes the kernel compare the memory of processes, MADV_PAGEOUT writes it to disk.
_COSTLY_ADVICE: Final = (12, 21)
# Options of prctl that concern the process alone. Among those left out are filters, core
# scheduling, names of mappings, and PR_SET_DUMPABLE, which hides from the supervisor.
_PROCESS_OPTIONS: Final = (
    *(1, 2, 15, 16, 29, 30, 36, 37, 40),  # death signal, name, timer slack, subreaper, thread id
    *(3, 7, 8, 21, 23, 24, 27, 28, 38, 39, 47),  # reading what it may do, and giving it up
    *(25, 26, 41, 42, 50, 51, 52, 53, 54, 55, 56, 60, 61, 63, 64),  # features of the processor
    *(65, 66, 74, 75, 76),  # write-protected code, shadow stacks
)


def refused_calls(machine: str, *, namespaces: bool) -> dict[str, int]:
    """Returns the calls that are not made with any arguments: numbers by name."""
    answers = call_groups.answers(namespaces=namespaces)
    return {
        name: number
        for name, number in calls.numbers(machine).items()
        if answers.get(name) is not None
    }


def known_calls(machine: str) -> dict[str, int]:
    """Returns every call of the processor: numbers by name."""
    return calls.numbers(machine)


@lru_cache
def program(*, namespaces: bool, machine: str | None = None) -> bytes:
    """Returns the filter in the format of `seccomp(2)` and bubblewrap."""
    # Without namespaces no file is the run's own, so there is none to lock.
    return _assemble(call_groups.answers(namespaces=namespaces), machine, locks=namespaces)


@lru_cache
def reader_program(*, opens: bool, writes: bool, machine: str | None = None) -> bytes:
    """Returns the filter of a process that reads foreign bytes. `opens` is for one that has a
    folder, `writes` for one that writes there.
    """
    answers = call_groups.reader_answers(opens=opens, writes=writes)
    return _assemble(answers, machine, locks=writes)


def _assemble(answers: dict[str, int | None], machine: str | None, *, locks: bool) -> bytes:
    machine = machine or os.uname().machine
    numbers = calls.numbers(machine)
    code = [
        _op(_LOAD, _ARCH),
        _op(_JUMP_EQUAL, _ARCHS[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        # The x32 calls are the same calls under other numbers.
        code += [_op(_JUMP_GREATER_EQUAL, _X32, 0, 1), _op(_RETURN, _KILL)]
    code += _refuse_by_arguments(numbers, locks=locks)
    code += _answer_ranges(numbers, answers)
    return b"".join(code)


def _refuse_by_arguments(numbers: dict[str, int], *, locks: bool) -> list[bytes]:
    commands = _COSTLY_COMMANDS if locks else (*_COSTLY_COMMANDS, *_LOCK_COMMANDS)
    return [
        *_refuse_with_bits(numbers["clone"], 0, _NEW_NAMESPACES, any_of=True),
        *_refuse_with_bits(numbers["mmap"], 3, _SHARED_ANONYMOUS, any_of=False),
        *_refuse_with_bits(numbers["mmap"], 3, _RESERVED_PAGES, any_of=True),
        *_refuse_unless(numbers["prlimit64"], 0, (_OWN_PID,)),
        *_refuse_unless(numbers["prctl"], 0, _PROCESS_OPTIONS),
        *_refuse_unless(numbers["socketpair"], 0, (_AF_UNIX,)),
        *_refuse_with_bits(numbers["socketpair"], 1, _DATAGRAM_BIT, any_of=True),
        *_refuse_values(numbers["fcntl"], 1, commands),
        *_refuse_values(numbers["madvise"], 2, _COSTLY_ADVICE),
        *_refuse_after(
            numbers["ioctl"],
            [
                _op(_LOAD, _FIRST_ARG + 8),
                _op(_AND, _REQUEST_GROUP),
                _op(_JUMP_EQUAL, _SOCKET_REQUESTS, 0, 1),
            ],
        ),
    ]


def _answer_ranges(numbers: dict[str, int], answers: dict[str, int | None]) -> list[bytes]:
    """Answers by number. Numbers in a row with the same answer share one comparison."""
    actions = {number: _action(answers.get(name)) for name, number in numbers.items()}
    missing = _action(errno.ENOSYS)
    code: list[bytes] = []
    for number in range(max(actions) + 1, 0, -1):
        action = actions.get(number, missing)
        if actions.get(number - 1, missing) != action:
            code += [_op(_JUMP_GREATER_EQUAL, number, 0, 1), _op(_RETURN, action)]
    return [*code, _op(_RETURN, actions.get(0, missing))]


def _action(error: int | None) -> int:
    return _ALLOW if error is None else _REFUSE | error


def _refuse_with_bits(number: int, argument: int, bits: int, *, any_of: bool) -> list[bytes]:
    """Refuses a call whose argument has any, or all, of these bits."""
    check = [_op(_LOAD, _FIRST_ARG + 8 * argument)]
    check += (
        [_op(_JUMP_ANY_BIT, bits, 0, 1)]
        if any_of
        else [_op(_AND, bits), _op(_JUMP_EQUAL, bits, 0, 1)]
    )
    return _refuse_after(number, check)


def _refuse_unless(number: int, argument: int, values: Iterable[int]) -> list[bytes]:
    """Refuses a call whose argument has another value."""
    comparisons = list(values)
    check = [_op(_LOAD, _FIRST_ARG + 8 * argument)]
    check += [
        _op(_JUMP_EQUAL, value, len(comparisons) - at, 0) for at, value in enumerate(comparisons)
    ]
    return _refuse_after(number, check)


def _refuse_values(number: int, argument: int, values: Iterable[int]) -> list[bytes]:
    """Refuses a call whose argument has one of these values."""
    *others, last = values
    check = [_op(_LOAD, _FIRST_ARG + 8 * argument)]
    check += [_op(_JUMP_EQUAL, value, len(others) - at, 0) for at, value in enumerate(others)]
    check.append(_op(_JUMP_EQUAL, last, 0, 1))
    return _refuse_after(number, check)


def _refuse_after(number: int, check: list[bytes]) -> list[bytes]:
    """The last instruction of `check` skips one instruction when the call is allowed."""
    check = [*check, _op(_RETURN, _REFUSE | errno.EPERM)]
    # Loads the call's number again for the next comparison.
    check.append(_op(_LOAD, _NUMBER))
    return [_op(_JUMP_EQUAL, number, 0, len(check)), *check]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
