"""Limits of memory: all processes of a run count together, whatever kind of memory they use."""

import pytest

from tests.sandbox.sandbox_runner import Attack, BombResult, SandboxRunner, exists


def _assert_memory_limit(outcome: BombResult) -> None:
    assert outcome.result.ending == "memory", (outcome.result.output, outcome.result.log)
    assert b"allocated" not in outcome.result.output


_PRIVATE = Attack(
    python="""
memory = []
for _ in range(30):
    memory.append(b"x" * (64 << 20))
print("allocated", len(memory))
import time; time.sleep(30)
""",
    node="""
const memory = [];
for (let i = 0; i < 30; i++) {
  memory.push(Buffer.alloc(64 << 20, "x"));
  await new Promise((resolve) => setTimeout(resolve, 50));
}
console.log("allocated", memory.length);
await new Promise((resolve) => setTimeout(resolve, 30000));
""",
    bash="""
text=xxxxxxxxxxxxxxxx
for i in {1..23}; do text=$text$text; done
sleep 30
more=$text$text
echo allocated ${#more}
""",
)


def _assert_bounded(outcome: BombResult) -> None:
    """The supervisor kills the run, or the kernel refuses memory, whichever comes first."""
    assert b"allocated" not in outcome.result.output
    assert outcome.result.ending in {"memory", "exited"}
    assert outcome.result.exit_code != 0


async def test_the_memory_of_a_run_is_bounded(runner: SandboxRunner) -> None:
    _assert_bounded(await runner.run_bomb("python", _PRIVATE, seconds=40))


@pytest.mark.usefixtures("little_memory")
async def test_memory_of_one_process_is_bounded(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_PRIVATE, seconds=25)).items():
        with subtests.test(language=language):
            _assert_bounded(outcome)


_CHILDREN = Attack(
    python="""
import time
for _ in range(10):
    if os.fork() == 0:
        memory = b"x" * (25 << 20)
        time.sleep(30)
        os._exit(0)
time.sleep(30)
print("allocated")
""",
    node="""
const code = "const memory = Buffer.alloc(25 << 20, 'x'); setTimeout(() => memory, 30000)";
for (let i = 0; i < 2; i++) child.spawn(process.execPath, ["-e", code, "@mark@"]);
await new Promise((resolve) => setTimeout(resolve, 30000));
console.log("allocated");
""",
    bash="""
for i in {1..10}; do
  (text=xxxxxxxxxxxxxxxx; for i in {1..20}; do text=$text$text; done; sleep 30; : @mark@) &
done
sleep 30
echo allocated
""",
)


@pytest.mark.usefixtures("little_memory")
async def test_memory_of_many_children_is_counted_together(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_CHILDREN, seconds=25)).items():
        with subtests.test(language=language):
            _assert_memory_limit(outcome)


_ORPHANS = Attack(
    python="""
import time
for _ in range(10):
    if os.fork() == 0:
        if os.fork() == 0:
            memory = b"x" * (25 << 20)
            time.sleep(30)
            os._exit(0)
        os._exit(0)
    os.wait()
time.sleep(30)
print("allocated")
""",
    node="""
const code = "const memory = Buffer.alloc(25 << 20, 'x'); setTimeout(() => memory, 30000)";
for (let i = 0; i < 2; i++) {
  child.spawnSync("/usr/bin/bash", ["-c", '"$0" -e "$1" @mark@ >/dev/null 2>&1 &',
    process.execPath, code]);
}
await new Promise((resolve) => setTimeout(resolve, 30000));
console.log("allocated");
""",
    bash="""
for i in {1..10}; do
  (
    (text=xxxxxxxxxxxxxxxx; for i in {1..20}; do text=$text$text; done; sleep 30; : @mark@) &
  )
done
sleep 30
echo allocated
""",
)


@pytest.mark.usefixtures("little_memory")
async def test_memory_of_orphaned_children_is_counted(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_ORPHANS, seconds=25)).items():
        with subtests.test(language=language):
            _assert_memory_limit(outcome)


# Shared anonymous memory survives unmapping, and no process's size includes it.
_SHARED = Attack(
    python="""
import ctypes, mmap
size = 64 << 20
attempt("shared", lambda: mmap.mmap(-1, size))
attempt("shared", lambda: mmap.mmap(-1, size, flags=mmap.MAP_SHARED | 2, prot=mmap.PROT_READ))
attempt("memfd", lambda: os.memfd_create("planted"))
attempt("secret", lambda: call("memfd_secret", 0))
attempt("segment", lambda: call("shmget", 0, ctypes.c_size_t(size), 0o1600))
attempt("zero", lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), size))
attempt("shm", lambda: open("/dev/shm/planted", "wb").write(b"x"))
from multiprocessing import shared_memory
attempt("shm", lambda: shared_memory.SharedMemory(create=True, size=size))
""",
    node="""
attempt("shm", () => fs.writeFileSync("/dev/shm/planted", "x"));
attempt("shm", () => fs.writeFileSync("/run/shm/planted", "x"));
""",
    bash="""
attempt shm sh -c "echo x > /dev/shm/planted"
attempt shm sh -c "echo x > /run/shm/planted"
""",
)


async def test_memory_that_no_limit_counts_cannot_be_allocated(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, output in (await runner.run_attacks({"shared": _SHARED})).of("shared"):
        with subtests.test(language=language):
            assert " could" not in output
    assert not exists("/dev/shm/planted")


@pytest.mark.usefixtures("little_memory")
async def test_page_tables_count_as_memory(runner: SandboxRunner) -> None:
    """Reading one byte of every 2 MiB costs a page table each, but no resident memory."""
    attack = Attack(
        python="""
import mmap, time
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
memory = mmap.mmap(-1, 4 << 40, flags=private, prot=mmap.PROT_READ)
for number in range(100_000):
    memory[number << 21]
print("allocated")
time.sleep(30)
""",
        node="",
        bash="",
    )
    _assert_memory_limit(await runner.run_bomb("python", attack, seconds=40))


@pytest.mark.usefixtures("little_memory")
async def test_socket_buffers_count_as_memory(runner: SandboxRunner) -> None:
    attack = Attack(
        python="""
import socket, time
def fill():
    memory = []
    try:
        while True:
            memory.append(socket.socketpair())
            for one in memory[-1]:
                one.setblocking(False)
                try:
                    while True:
                        one.send(b"x" * 65536)
                except BlockingIOError:
                    pass
    except OSError:
        return memory
for _ in range(20):
    if os.fork() == 0:
        memory = fill()
        time.sleep(30)
        os._exit(0)
time.sleep(30)
print("allocated")
""",
        node="",
        bash="",
    )
    _assert_memory_limit(await runner.run_bomb("python", attack, seconds=40))
