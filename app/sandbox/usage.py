"""Measures what the processes of a run use together: the kernel's limits count each alone."""

import os
import re
from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from app.sandbox.limits import Limits

# Upper bounds of an empty file's size, of a mapping with its links to those of forked processes,
# and of a lock.
_FILE_BYTES = 2048
_MAPPING_BYTES = 4096
_UNCOUNTED_MAPPINGS = 512
_LOCK_BYTES = 256
_LOCKS_PATH = Path("/proc/locks")
# A line: 1: POSIX  ADVISORY  WRITE 4711 fe:00:12345 0 EOF
_LOCK_OWNER = re.compile(rb"^\d+: +(?:-> +)?\w+ +\w+ +\w+ +(\d+) ", re.MULTILINE)
# The newest locks are listed first, and a run that sets many has most of them.
_MAX_LOCKS_BYTES = 64 * 1024
# What the kernel buffers for an unread socket, and where a machine says that it is more.
_DESCRIPTOR_BYTES = 208 * 1024
_DESCRIPTOR_SETTING = Path("/proc/sys/net/core/wmem_default")
_UNCOUNTED_DESCRIPTORS = 24
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# With more processes, mappings are counted each time: a fork copies all of them.
_FEW_PROCESSES = 6


class Usage(NamedTuple):
    """The memory of a run in bytes, the processor time of its processes, and their threads."""

    memory: int
    cpu_seconds: float
    processes: list[int]
    threads: list[int]


def measure(root_pid: int, limits: Limits, *, in_detail: bool = True) -> Usage:
    """Measures a process and all its descendants. `in_detail` includes mappings and locks, which
    take longer to read.
    """
    memory, scratch, cpu_seconds = 0, 0, 0.0
    processes, threads, pids = [], [], [root_pid]
    while pids:
        pid = pids.pop()
        with suppress(OSError, ValueError, IndexError):
            process = Path(f"/proc/{pid}")
            memory += _resident_memory(process) + _kernel_buffers(process, limits)
            cpu_seconds += _cpu_seconds(process)
            scratch = scratch or _scratch_memory(process, limits)
            processes.append(pid)
            for thread in (process / "task").iterdir():
                threads.append(int(thread.name))
                pids += map(int, (thread / "children").read_text(encoding="ascii").split())
    if in_detail or len(processes) > _FEW_PROCESSES:
        memory += sum(_mapping_memory(pid, limits) for pid in processes)
    if in_detail:
        memory += _lock_memory(set(processes), limits)
    return Usage(memory + scratch, cpu_seconds, processes, threads)


def _resident_memory(process: Path) -> int:
    """Returns the memory of a process, also what is swapped out, and its page tables, which can be
    larger than it.
    """
    kib = 0
    for line in (process / "status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("VmRSS:", "VmSwap:", "HugetlbPages:", "VmPTE:")):
            kib += int(line.split()[1])
    return kib * 1024


def _kernel_buffers(process: Path, limits: Limits) -> int:
    """Returns a bound for the kernel's pipe and socket buffers, which no process's memory shows."""
    try:
        descriptors = sum(1 for _ in (process / "fd").iterdir())
    except PermissionError:
        descriptors = limits.open_files
    return max(0, descriptors - _UNCOUNTED_DESCRIPTORS) * _descriptor_bytes()


@lru_cache
def _descriptor_bytes() -> int:
    with suppress(OSError, ValueError):
        return max(_DESCRIPTOR_BYTES, int(_DESCRIPTOR_SETTING.read_text(encoding="ascii")))
    return _DESCRIPTOR_BYTES


def _cpu_seconds(process: Path) -> float:
    """Returns the processor time of a process and of the children that it has waited for."""
    fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def _scratch_memory(process: Path, limits: Limits) -> int:
    """Returns the size of the run's own /tmp in memory; empty files count as well."""
    with suppress(OSError):
        stats = os.statvfs(process / "root" / "tmp")
        if stats.f_blocks * stats.f_frsize == limits.scratch_bytes:
            used = (stats.f_blocks - stats.f_bfree) * stats.f_frsize
            return used + (stats.f_files - stats.f_ffree) * _FILE_BYTES
    return 0


def _mapping_memory(pid: int, limits: Limits) -> int:
    """Returns a bound for the kernel's list of mappings. A process with more than it may have
    counts as a whole run that is too large: its list is not read to its end.
    """
    count = 0
    try:
        descriptor = os.open(f"/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return limits.mappings * _MAPPING_BYTES
    except OSError:
        return 0
    try:
        with suppress(OSError):
            while count <= limits.mappings and (lines := os.read(descriptor, 65536)):
                count += lines.count(b"\n")
    finally:
        os.close(descriptor)
    if count > limits.mappings:
        return limits.total_bytes + 1
    return max(0, count - _UNCOUNTED_MAPPINGS) * _MAPPING_BYTES


def _lock_memory(pids: Collection[int], limits: Limits) -> int:
    """Returns the size of the locks on files. A run with more than it may have counts as too large:
    the list is not read to its end.
    """
    with suppress(OSError), _LOCKS_PATH.open("rb", buffering=0) as file:
        text = b""
        while len(text) < _MAX_LOCKS_BYTES and (lines := file.read(_MAX_LOCKS_BYTES)):
            text += lines
        count = sum(1 for owner in _LOCK_OWNER.findall(text) if int(owner) in pids)
        return limits.total_bytes + 1 if count > limits.locks else count * _LOCK_BYTES
    return 0
