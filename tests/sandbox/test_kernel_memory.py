"""Memory of the kernel for mappings, locks and descriptors counts as well."""

from pathlib import Path

import pytest

from app.sandbox import usage
from tests.sandbox.sandbox_runner import Attack, BombResult, SandboxRunner

_MAPPINGS = """
import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def split(pages):
    # Neighbours with different rights are mappings of their own.
    start = libc.mmap(None, pages * 4096, 3, 0x22, -1, 0)
    for page in range(0, pages, 2):
        libc.mprotect(start + page * 4096, 4096, 1)
        ctypes.memset(start + (page + 1) * 4096, 1, 1)
        libc.madvise(start + (page + 1) * 4096, 4096, 4)
"""


def _assert_ended_for_memory(outcome: BombResult) -> None:
    assert outcome.result.ending == "memory", (outcome.result.output, outcome.result.log)
    assert b"allocated" not in outcome.result.output


async def test_one_process_has_a_bounded_number_of_mappings(runner: SandboxRunner) -> None:
    attack = Attack(
        python=_MAPPINGS + "split(30000); time.sleep(5); print('allocated')", node="", bash=""
    )
    _assert_ended_for_memory(await runner.run_bomb("python", attack, seconds=10))


@pytest.mark.usefixtures("little_memory")
async def test_mappings_that_forks_copy_count_together(runner: SandboxRunner) -> None:
    code = """
split(5600)
for _ in range(10):
    if os.fork() == 0:
        break
time.sleep(8)
print("allocated")
"""
    attack = Attack(python=_MAPPINGS + code, node="", bash="")
    _assert_ended_for_memory(await runner.run_bomb("python", attack, seconds=15))


@pytest.mark.parametrize("runner", ["bubblewrap"], indirect=True)
async def test_locks_on_a_file_are_bounded(runner: SandboxRunner) -> None:
    """The kernel has no limit for them; the other tier refuses all of them."""
    attack = Attack(
        python="""
import fcntl, struct, time
file = os.open("/usr/bin/env", os.O_RDONLY)
for number in range(3000):
    fcntl.fcntl(file, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, number * 2, 1, 0))
time.sleep(5)
print("allocated")
""",
        node="",
        bash="",
    )
    _assert_ended_for_memory(await runner.run_bomb("python", attack, seconds=10))


@pytest.mark.usefixtures("little_memory")
async def test_descriptors_of_all_processes_count_together(runner: SandboxRunner) -> None:
    """Each end of a pipe may have a buffer, and each pair of them a watch."""
    attack = Attack(
        python="""
import select, time
for _ in range(10):
    if os.fork() == 0:
        polls = [select.epoll() for _ in range(100)]
        files = [os.eventfd(0) for _ in range(100)]
        for poll in polls:
            for file in files:
                poll.register(file)
        time.sleep(8)
        os._exit(0)
time.sleep(8)
print("allocated")
""",
        node="",
        bash="",
    )
    _assert_ended_for_memory(await runner.run_bomb("python", attack, seconds=15))


def test_memory_that_is_swapped_out_or_reserved_counts(tmp_path: Path) -> None:
    """Code can have its memory written to disk, where nothing else bounds it."""
    status = "Name:\tVmSwap: 9 kB\nVmPeak:\t99 kB\nVmRSS:\t1 kB\nVmPTE:\t2 kB\nVmSwap:\t4 kB\n"
    (tmp_path / "status").write_text(status + "HugetlbPages:\t8 kB\n")
    assert usage._resident_memory(tmp_path) == 15 * 1024
