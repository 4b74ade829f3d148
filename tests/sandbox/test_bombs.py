"""Taking too much: of processes, memory, disk, output, time. The run ends, the machine stays."""

import asyncio
import time
from pathlib import Path

import pytest

from app.kit.sandbox.limits import MIB, Limits
from app.kit.sandbox.program import Language
from tests.sandbox.cage import Attack, Cage, Watched, exists, names_in

LIMITS = Limits()
# What starts and holds a run is not of its own making.
_STARTERS = 4

# Even without any limit each of these would come to an end, at some thousand processes.
_FORKS = Attack(
    python="""
import time
for _ in range(400):
    try:
        if os.fork() == 0:
            for _ in range(5):
                try:
                    os.fork()
                except OSError:
                    pass
            time.sleep(30)
            os._exit(0)
    except OSError:
        pass
print("full", flush=True)
time.sleep(30)
""",
    node="""
for (let i = 0; i < 400; i++) {
  const made = child.spawn("/usr/bin/bash", ["-c", "sleep 30 & sleep 30; : @mark@"]);
  made.on("error", () => {});
}
console.log("full");
await new Promise((resolve) => setTimeout(resolve, 30000));
""",
    bash="""
for i in {1..400}; do (sleep 30 & sleep 30; : @mark@) & done
wait
""",
)


async def test_a_fork_bomb_stays_within_its_processes(cage: Cage, language: Language) -> None:
    seen = await cage.bomb(language, _FORKS, seconds=1.5)
    assert seen.ran.ending == "timeout"
    assert seen.seconds < 4
    assert seen.most_processes <= LIMITS.processes + _STARTERS
    after = await cage.run("bash", "echo fine")
    assert after.output == b"fine\n"


async def test_a_fork_bomb_does_not_starve_the_run_beside_it(cage: Cage) -> None:
    bomb = asyncio.create_task(cage.bomb("python", _FORKS, seconds=2))
    await asyncio.sleep(0.5)
    before = time.monotonic()
    code = """
import subprocess
print([subprocess.run(["echo", "child"], capture_output=True).stdout for _ in range(5)])
"""
    beside = await cage.run("python", code, seconds=5)
    took = time.monotonic() - before
    await bomb
    assert beside.ending == "exited"
    assert beside.output.count(b"child") == 5
    assert took < 3


def _bounded(seen: Watched) -> None:
    assert seen.ran.ending == "memory", (seen.ran.output, seen.ran.log)
    assert b"kept" not in seen.ran.output


_PRIVATE = Attack(
    python="""
kept = []
for _ in range(30):
    kept.append(b"x" * (64 << 20))
print("kept", len(kept))
import time; time.sleep(30)
""",
    node="""
const kept = [];
for (let i = 0; i < 30; i++) {
  kept.push(Buffer.alloc(64 << 20, "x"));
  await new Promise((resolve) => setTimeout(resolve, 10));
}
console.log("kept", kept.length);
await new Promise((resolve) => setTimeout(resolve, 30000));
""",
    bash="""
text=xxxxxxxxxxxxxxxx
for i in {1..24}; do text=$text$text; done
more=$text$text
echo kept ${#more}
sleep 30
""",
)


async def test_memory_of_one_process_is_bounded(cage: Cage, language: Language) -> None:
    """Ended from outside, or told by the kernel that there is no more: whichever comes first."""
    seen = await cage.bomb(language, _PRIVATE, seconds=20)
    assert b"kept" not in seen.ran.output
    assert seen.ran.ending in {"memory", "exited"}
    assert seen.ran.exit_code != 0


_CHILDREN = Attack(
    python="""
import time
for _ in range(10):
    if os.fork() == 0:
        kept = b"x" * (100 << 20)
        time.sleep(30)
        os._exit(0)
time.sleep(15)
print("kept")
""",
    node="""
const code = "const kept = Buffer.alloc(100 << 20, 'x'); setTimeout(() => kept, 30000)";
for (let i = 0; i < 6; i++) child.spawn(process.execPath, ["-e", code, "@mark@"]);
await new Promise((resolve) => setTimeout(resolve, 15000));
console.log("kept");
""",
    bash="""
for i in {1..10}; do
  (text=xxxxxxxxxxxxxxxx; for i in {1..22}; do text=$text$text; done; sleep 30; : @mark@) &
done
sleep 15
echo kept
""",
)


async def test_memory_of_many_children_is_counted_together(cage: Cage, language: Language) -> None:
    _bounded(await cage.bomb(language, _CHILDREN, seconds=20))


_ORPHANS = Attack(
    python="""
import time
for _ in range(10):
    if os.fork() == 0:
        if os.fork() == 0:
            kept = b"x" * (100 << 20)
            time.sleep(30)
            os._exit(0)
        os._exit(0)
    os.wait()
time.sleep(15)
print("kept")
""",
    node="""
const code = "const kept = Buffer.alloc(100 << 20, 'x'); setTimeout(() => kept, 30000)";
for (let i = 0; i < 6; i++) {
  child.spawnSync("/usr/bin/bash", ["-c", '"$0" -e "$1" @mark@ >/dev/null 2>&1 &',
    process.execPath, code]);
}
await new Promise((resolve) => setTimeout(resolve, 15000));
console.log("kept");
""",
    bash="""
for i in {1..10}; do
  (
    (text=xxxxxxxxxxxxxxxx; for i in {1..22}; do text=$text$text; done; sleep 30; : @mark@) &
  )
done
sleep 15
echo kept
""",
)


async def test_memory_of_children_without_a_parent_is_counted_too(
    cage: Cage, language: Language
) -> None:
    _bounded(await cage.bomb(language, _ORPHANS, seconds=20))


async def test_memory_that_no_limit_counts_is_not_to_be_had(cage: Cage) -> None:
    """Shared, anonymous, in no file: it outlasts being mapped, and is in nobody's size."""
    attack = Attack(
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
        node="",
        bash="",
    )
    said = await cage.attack("python", attack)
    assert " could" not in said
    assert not exists("/dev/shm/planted")


@pytest.mark.parametrize("language", ["node", "bash"])
async def test_shared_memory_has_no_place(cage: Cage, language: Language) -> None:
    attack = Attack(
        python="",
        node="""
attempt("shm", () => fs.writeFileSync("/dev/shm/planted", "x"));
attempt("shm", () => fs.writeFileSync("/run/shm/planted", "x"));
""",
        bash="""
attempt shm sh -c "echo x > /dev/shm/planted"
attempt shm sh -c "echo x > /run/shm/planted"
""",
    )
    assert " could" not in await cage.attack(language, attack)
    assert not exists("/dev/shm/planted")


async def test_tables_of_an_empty_memory_are_counted(cage: Cage) -> None:
    """Reading one byte of every 2 MiB costs a page of tables each, and nothing that is resident."""
    attack = Attack(
        python="""
import mmap, time
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
kept = mmap.mmap(-1, 4 << 40, flags=private, prot=mmap.PROT_READ)
for number in range(250_000):
    kept[number << 21]
print("kept")
time.sleep(30)
""",
        node="",
        bash="",
    )
    _bounded(await cage.bomb("python", attack, seconds=20))


async def test_what_waits_in_sockets_is_counted(cage: Cage) -> None:
    attack = Attack(
        python="""
import socket, time
def fill():
    kept = []
    try:
        while True:
            kept.append(socket.socketpair())
            for one in kept[-1]:
                one.setblocking(False)
                try:
                    while True:
                        one.send(b"x" * 65536)
                except BlockingIOError:
                    pass
    except OSError:
        return kept
for _ in range(20):
    if os.fork() == 0:
        kept = fill()
        time.sleep(30)
        os._exit(0)
time.sleep(15)
print("kept")
""",
        node="",
        bash="",
    )
    _bounded(await cage.bomb("python", attack, seconds=20))


_FILLING = Attack(
    python="""
written = 0
def fill():
    global written
    for number in range(64):
        with open(f"/tmp/{number}", "wb", buffering=0) as file:
            while written < 64 << 20:
                written += file.write(b"x" * 65536)
attempt("fill", fill)
print("written", written)
""",
    node="""
let written = 0;
attempt("fill", () => {
  for (let i = 0; i < 64; i++) {
    const file = fs.openSync(`/tmp/${i}`, "w");
    while (written < 64 << 20) {
      try { written += fs.writeSync(file, Buffer.alloc(65536, "x")); }
      catch (error) { if (error.code === "EFBIG") break; throw error; }
    }
  }
});
console.log("written", written);
""",
    bash="""
for i in {1..8}; do yes | head -c 8000000 > /tmp/$i; done 2>/dev/null
echo written $(cat /tmp/* 2>/dev/null | wc -c)
""",
)


async def test_scratch_space_is_bounded(cage: Cage, language: Language) -> None:
    said = await cage.attack(language, _FILLING)
    written = int(said.split("written ")[1].split()[0])
    if cage.tier == "bubblewrap":
        assert MIB < written <= LIMITS.scratch_bytes
    else:
        assert written == 0


_PLACES = Attack(
    python="""
for folder in @places@:
    attempt(folder, lambda: open(folder + "/planted", "w").write("x"))
    attempt(folder, lambda: os.mkdir(folder + "/planted-folder"))
    attempt(folder, lambda: os.mkfifo(folder + "/planted-pipe"))
    attempt(folder, lambda: os.open(folder, os.O_TMPFILE | os.O_RDWR))
""",
    node="""
for (const folder of @places@) {
  attempt(folder, () => fs.writeFileSync(folder + "/planted", "x"));
  attempt(folder, () => fs.mkdirSync(folder + "/planted-folder"));
}
""",
    bash="""
for folder in $(echo '@places@' | tr -d "[]',"); do
  attempt "$folder" sh -c "echo x > $folder/planted"
  attempt "$folder" mkdir "$folder/planted-folder"
  attempt "$folder" mkfifo "$folder/planted-pipe"
done
""",
)


async def test_nothing_but_scratch_space_is_writable(
    cage: Cage, language: Language, open_folder: Path
) -> None:
    places = [str(open_folder), str(cage.home), "/var/tmp", "/usr", "/usr/local", "/dev", "/etc"]
    places += ["/", "/code", "/runtime", "/packages", "/run", "/dev/shm", "/home", "."]
    if cage.tier == "landlock":
        places.append("/tmp")
    else:
        places.remove(".")
    said = await cage.attack(language, _PLACES, places=places)
    assert " could" not in said
    assert names_in(open_folder) == []
    assert not [place for place in places if place != "." and exists(f"{place}/planted")]


async def test_many_empty_files_are_counted(cage: Cage) -> None:
    """They take none of the scratch space, but of the machine's memory."""
    attack = Attack(
        python="""
made = 0
def fill():
    global made
    while made < 400_000:
        os.close(os.open(f"/tmp/{made}", os.O_CREAT | os.O_WRONLY))
        made += 1
attempt("fill", fill)
print("made", made)
""",
        node="",
        bash="",
    )
    seen = await cage.bomb("python", attack, seconds=20)
    if cage.tier == "bubblewrap":
        assert seen.ran.ending == "memory"
        assert b"made" not in seen.ran.output
    else:
        assert b"made 0\n" in seen.ran.output


_FLOOD = Attack(
    python="""
while True:
    os.write(@to@, b"x" * 65536)
""",
    node="""
const text = Buffer.alloc(65536, "x");
for (;;) {
  try { fs.writeSync(@to@, text); }
  catch (error) { if (error.code !== "EAGAIN") throw error; }
}
""",
    bash="""
exec yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >&@to@
""",
)


async def test_a_flood_of_output_ends_the_run(cage: Cage, language: Language) -> None:
    seen = await cage.bomb(language, _FLOOD, seconds=10, to=1)
    assert seen.ran.ending == "output"
    assert len(seen.ran.output) <= LIMITS.output_bytes + 65536
    assert seen.seconds < 5


async def test_a_flood_of_its_log_is_drained_and_forgotten(cage: Cage, language: Language) -> None:
    seen = await cage.bomb(language, _FLOOD, seconds=1, to=2)
    assert seen.ran.ending == "timeout"
    assert len(seen.ran.log) == LIMITS.log_bytes
    assert seen.seconds < 4


async def test_a_large_log_does_not_keep_a_run_from_ending(cage: Cage) -> None:
    code = "import sys; sys.stderr.write('x' * 5_000_000); print('done')"
    ran = await cage.run("python", code)
    assert (ran.ending, ran.output, len(ran.log)) == ("exited", b"done\n", LIMITS.log_bytes)


_ENDLESS = Attack(
    python="""
import re
re.match(r"(a+)+$", "a" * 64 + "b")
""",
    node="""
/^(a+)+$/.test("a".repeat(64) + "b");
""",
    bash="""
while :; do :; done
""",
)


async def test_what_never_ends_is_ended(cage: Cage, language: Language) -> None:
    seen = await cage.bomb(language, _ENDLESS, seconds=0.7)
    assert seen.ran.ending == "timeout"
    assert seen.seconds < 3
    assert b"tried" not in seen.ran.output
