"""The memory that this machine, or the control group of this process, has left."""

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_MEMINFO = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


class _Names(NamedTuple):
    """The files of a control group, and the rows of its statistics that can be reclaimed."""

    limit: str
    usage: str
    cache: tuple[bytes, ...]


_UNIFIED = _Names(
    "memory.max", "memory.current", (b"inactive_file", b"active_file", b"slab_reclaimable")
)
_SEPARATE = _Names(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    (b"total_inactive_file", b"total_active_file"),
)


def available_bytes() -> int:
    """Returns how much can be allocated before the machine or a control group has no more."""
    available = _machine_bytes()
    for group, names in _groups():
        available = min(available, _room(group, names, available))
    return available


def _machine_bytes() -> int:
    for line in _MEMINFO.read_bytes().splitlines():
        if line.startswith(b"MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("the kernel does not say how much memory is available")


@lru_cache
def _groups() -> tuple[tuple[Path, _Names], ...]:
    """Returns the control groups of this process, with all above it, that can limit memory."""
    groups: list[tuple[Path, _Names]] = []
    with suppress(OSError, ValueError):
        for line in _OWN_GROUPS.read_text(encoding="utf-8").splitlines():
            _, controllers, name = line.split(":", 2)
            if not controllers:
                groups += _with_parents(_MOUNT, name, _UNIFIED)
            elif "memory" in controllers.split(","):
                groups += _with_parents(_MOUNT / "memory", name, _SEPARATE)
    return tuple(groups)


def _with_parents(mount: Path, name: str, names: _Names) -> list[tuple[Path, _Names]]:
    group = mount / name.strip("/")
    # A container sees its own group as the root.
    folders = [group, *(parent for parent in group.parents if parent.is_relative_to(mount)), mount]
    return [(folder, names) for folder in dict.fromkeys(folders) if (folder / names.limit).exists()]


def _room(group: Path, names: _Names, enough: int) -> int:
    """Returns what the group may still allocate, at most `enough`. Its statistics are only read
    when they decide: that takes long.
    """
    with suppress(OSError, ValueError, IndexError):
        limit = (group / names.limit).read_text(encoding="ascii").strip()
        if limit == "max":
            return enough
        room = int(limit) - int((group / names.usage).read_text(encoding="ascii"))
        if room < enough:
            room += _read_cache(group, names)
        return min(room, enough)
    return enough


def _read_cache(group: Path, names: _Names) -> int:
    return sum(
        int(line.split()[1])
        for line in (group / "memory.stat").read_bytes().splitlines()
        if line.split()[0] in names.cache
    )
