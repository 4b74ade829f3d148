"""A machine that is short of memory: the largest run ends, and new ones wait for room."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.sandbox import machine_memory
from app.sandbox.limits import MIB, Limits
from app.sandbox.usage import Usage
from app.sandbox.watcher import NoRoom, WatchedRun, Watcher
from tests.sandbox.sandbox_runner import (
    SandboxRunner,
    in_one_tier,
    wait_until,
)

FLOOR = 256 * MIB
PLENTY, LITTLE = 4096 * MIB, 100 * MIB


class Machine:
    """The memory that the watcher of a sandbox sees."""

    def __init__(self) -> None:
        self.available = PLENTY
        self.is_freed: Callable[[], bool] = lambda: False
        self.reads = 0

    def read(self) -> int:
        self.reads += 1
        if self.is_freed():
            self.available = PLENTY
        return self.available


@pytest.fixture
def machine(runner: SandboxRunner, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(runner.sandbox.watcher, "read_available", machine.read)
    monkeypatch.setattr(runner.sandbox.watcher, "min_free_bytes", FLOOR)
    return machine


def _allocate(mib: int) -> str:
    code = "import sys, time\nmemory = b'x' * (@mib@ << 20)\nprint('ready', flush=True)\n"
    return code.replace("@mib@", str(mib)) + "sys.stdin.read()\ntime.sleep(1.5)\nprint('done')\n"


@in_one_tier
async def test_the_largest_run_ends_when_the_machine_is_short_of_memory(
    runner: SandboxRunner, machine: Machine
) -> None:
    small = asyncio.create_task(runner.run("python", _allocate(8), seconds=20))
    large = asyncio.create_task(runner.run("python", _allocate(150), seconds=20))
    sizes: list[int] = []

    def is_allocated() -> bool:
        runs = list(runner.sandbox.watcher._runs)
        usages = runner.sandbox.watcher._inspect(runs, False)  # noqa: FBT003
        sizes[:] = sorted(used.memory for used in usages.values())
        return len(sizes) == 2 and sizes[1] > 150 * MIB

    assert await wait_until(is_allocated)
    machine.available = LITTLE
    # There is room again as soon as one of them has ended.
    machine.is_freed = lambda: len(runner.sandbox.watcher._runs) == 1
    assert (await large).ending == "machine_memory"
    result = await small
    assert (result.ending, result.output) == ("exited", b"ready\ndone\n")


@in_one_tier
async def test_a_new_run_waits_until_there_is_room_and_then_has_all_its_time(
    runner: SandboxRunner, machine: Machine
) -> None:
    machine.available = LITTLE
    code = "import time; time.sleep(1); print('ran')"
    task = asyncio.create_task(runner.run("python", code, seconds=2.5))
    assert await wait_until(lambda: machine.reads > 12)
    assert not runner.sandbox.watcher._runs
    machine.available = PLENTY
    result = await task
    assert (result.ending, result.output) == ("exited", b"ran\n")


@in_one_tier
async def test_a_run_that_waits_for_longer_than_its_time_is_refused(
    runner: SandboxRunner, machine: Machine
) -> None:
    machine.available = LITTLE
    with pytest.raises(NoRoom, match=r"no memory for it within 0\.3 s"):
        await runner.run("python", "print(1)", seconds=0.3)


@in_one_tier
async def test_without_a_floor_the_memory_of_the_machine_is_not_read(
    runner: SandboxRunner, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.sandbox.watcher, "min_free_bytes", 0)
    machine.available = LITTLE
    result = await runner.run("python", "import time; time.sleep(0.2); print('ran')")
    assert (result.output, machine.reads) == (b"ran\n", 0)


async def test_a_reading_from_before_a_run_ended_ends_no_other() -> None:
    """The run that ended may have freed enough."""
    watcher, first, second = Watcher(Limits(), FLOOR), WatchedRun(1), WatchedRun(2)
    usages = {first: Usage(1, 0, [], []), second: Usage(9, 0, [], [])}
    second.ending.cancel()
    watcher._keep_free_memory(usages, LITTLE)
    assert not first.ending.done()
    del usages[second]
    watcher._keep_free_memory(usages, LITTLE)
    assert first.ending.result() == "machine_memory"


@pytest.fixture
def control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Returns a function that writes files of control groups and returns what is available."""
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    1000000 kB\n")
    monkeypatch.setattr(machine_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine_memory, "_OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine_memory, "_MOUNT", tmp_path / "mount")

    def read(groups: str, files: dict[str, str]) -> int:
        shutil.rmtree(tmp_path / "mount", ignore_errors=True)
        (tmp_path / "cgroup").write_text(groups)
        for name, text in files.items():
            path = tmp_path / "mount" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        machine_memory._groups.cache_clear()
        return machine_memory.available_bytes()

    yield read
    machine_memory._groups.cache_clear()


_CONTROL_GROUPS: dict[str, tuple[str, dict[str, str], int]] = {
    "no limit": ("0::/\n", {}, 1_024_000_000),
    "unreadable": ("0::/\n", {"memory.max": "1\n", "memory.current": "?"}, 1_024_000_000),
    "a container": (
        "0::/\n",
        {
            "memory.max": "3000\n",
            "memory.current": "1000\n",
            "memory.stat": "anon 5\ninactive_file 20\nactive_file 3\nslab_reclaimable 1\n",
        },
        2024,
    ),
    "a group above": (
        "0::/a/b\n",
        {
            "a/b/memory.max": "max\n",
            "a/b/memory.current": "1\n",
            "a/memory.max": "500\n",
            "a/memory.current": "100\n",
            "a/memory.stat": "inactive_file 50\n",
        },
        450,
    ),
    "separate controllers": (
        "4:memory:/x\n0::/\n",
        {
            "memory/memory.limit_in_bytes": "700\n",
            "memory/memory.usage_in_bytes": "300\n",
            "memory/memory.stat": "total_inactive_file 30\ninactive_file 999\n",
        },
        430,
    ),
}


def test_the_control_group_of_the_process_counts_as_the_machine(
    control_groups: Callable[..., int], subtests: pytest.Subtests
) -> None:
    for name, (groups, files, expected) in _CONTROL_GROUPS.items():
        with subtests.test(name):
            assert control_groups(groups, files) == expected
