"""The system calls that user code may not make: a seccomp program, assembled without a library.

Calls of ordinary programs are allowed. Calls that reach other processes, the network, rarely used
parts of the kernel or memory that no limit counts fail with EPERM.
"""

import errno
import platform
import struct
from typing import Final

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

# The CLONE_NEW* flags of clone and unshare, which create namespaces.
_NEW_NAMESPACES = 0x7E020000
# MAP_SHARED | MAP_ANONYMOUS: memory that no limit counts.
_SHARED_ANONYMOUS = 0x21

_ARCHS: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (x86_64, aarch64); None where the processor has no such call.
_Calls = dict[str, tuple[int | None, int | None]]
_REFUSED: Final[_Calls] = {
    # The network. Socket pairs stay allowed: event loops use them as pipes.
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    # These do work in the kernel that seccomp does not see.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    # Memory that no limit counts.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # Namespaces, mounts, roots.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "fanotify_init": (300, 262),
    # The machine.
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "personality": (135, 92),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "uselib": (134, None),
    "modify_ldt": (154, None),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "mbind": (237, 235),
}
# Without namespaces: calls that reach files and processes of the machine despite Landlock.
_REFUSED_WITHOUT_NAMESPACES: Final[_Calls] = {
    # A process that leaves its process group is not killed with it.
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # Landlock lets the owner of a file change its metadata.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    # Landlock lets a process watch the file names of others.
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    # The priority of other processes of the same user.
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
# Refused or allowed by their arguments.
_BY_ARGUMENTS: Final[_Calls] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "mmap": (9, 222),
    "prlimit64": (302, 261),
    "socketpair": (53, 199),
}
_OWN_PID, _AF_UNIX = 0, 1
# A bit of SOCK_DGRAM and SOCK_RAW: such a socket, even one of a pair, sends to any address.
_DATAGRAM_BIT = 2


class NoFilter(Exception):
    """There is no system call table for this processor."""


def refused_calls(machine: str, *, namespaces: bool) -> dict[str, int]:
    """Returns the calls that are refused with any arguments: numbers by name."""
    return _numbers(machine, _REFUSED if namespaces else _REFUSED | _REFUSED_WITHOUT_NAMESPACES)


def known_calls(machine: str) -> dict[str, int]:
    """Returns every call that the filters name: numbers by name."""
    return _numbers(machine, _REFUSED | _REFUSED_WITHOUT_NAMESPACES | _BY_ARGUMENTS)


def _numbers(machine: str, calls: _Calls) -> dict[str, int]:
    if machine not in _ARCHS:
        raise NoFilter(f"no system call table for {machine}")
    column = list(_ARCHS).index(machine)
    return {name: number for name, row in calls.items() if (number := row[column]) is not None}


def program(*, namespaces: bool, machine: str | None = None) -> bytes:
    """Returns the filter in the format of `seccomp(2)` and bubblewrap."""
    machine = machine or platform.machine()
    refused = refused_calls(machine, namespaces=namespaces)
    by_arguments = _numbers(machine, _BY_ARGUMENTS)
    code = [
        _op(_LOAD, _ARCH),
        _op(_JUMP_EQUAL, _ARCHS[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        # The x32 calls are the same calls under other numbers.
        code += [_op(_JUMP_GREATER_EQUAL, _X32, 0, 1), _op(_RETURN, _KILL)]
    for number in sorted(refused.values()):
        code += [_op(_JUMP_EQUAL, number, 0, 1), _op(_RETURN, _REFUSE | errno.EPERM)]
    # A filter cannot read clone3's flags in memory; after ENOSYS the C library uses clone.
    code += [
        _op(_JUMP_EQUAL, by_arguments["clone3"], 0, 1),
        _op(_RETURN, _REFUSE | errno.ENOSYS),
    ]
    code += _refuse_with_bits(by_arguments["clone"], 0, _NEW_NAMESPACES, any_of=True)
    code += _refuse_with_bits(by_arguments["mmap"], 3, _SHARED_ANONYMOUS, any_of=False)
    code += _refuse_unless(by_arguments["prlimit64"], 0, _OWN_PID)
    code += _refuse_unless(by_arguments["socketpair"], 0, _AF_UNIX)
    code += _refuse_with_bits(by_arguments["socketpair"], 1, _DATAGRAM_BIT, any_of=True)
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def _refuse_with_bits(number: int, argument: int, bits: int, *, any_of: bool) -> list[bytes]:
    """Refuses a call whose argument has any, or all, of these bits."""
    check = [_op(_LOAD, _FIRST_ARG + 8 * argument)]
    check += (
        [_op(_JUMP_ANY_BIT, bits, 0, 1)]
        if any_of
        else [_op(_AND, bits), _op(_JUMP_EQUAL, bits, 0, 1)]
    )
    return _refuse_after(number, check)


def _refuse_unless(number: int, argument: int, value: int) -> list[bytes]:
    """Refuses a call whose argument has another value."""
    check = [_op(_LOAD, _FIRST_ARG + 8 * argument), _op(_JUMP_EQUAL, value, 1, 0)]
    return _refuse_after(number, check)


def _refuse_after(number: int, check: list[bytes]) -> list[bytes]:
    check = [*check, _op(_RETURN, _REFUSE | errno.EPERM)]
    # Loads the call's number again for the next comparison.
    check.append(_op(_LOAD, _NUMBER))
    return [_op(_JUMP_EQUAL, number, 0, len(check)), *check]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
