"""Limits of disk space: only the scratch space is writable, and it is bounded."""

from typing import NamedTuple

import pytest

from app.sandbox.limits import MIB, Limits
from tests.sandbox.sandbox_runner import (
    Attack,
    Report,
    SandboxRunner,
    create_open_folder,
    exists,
    list_names,
)

LIMITS = Limits()


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


_WRITES = Attack(
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


class Target(NamedTuple):
    written: list[str]
    report: Report


@pytest.fixture(scope="module")
async def target(runner: SandboxRunner) -> Target:
    """The files that attacks created outside, and what the attacks printed."""
    with create_open_folder() as open_folder:
        folders = [str(open_folder), str(runner.home), "/var/tmp", "/usr", "/usr/local", "/dev"]
        folders += ["/etc", "/", "/code", "/runtime", "/packages", "/run", "/dev/shm", "/home"]
        own = ["/tmp", "."] if runner.tier == "landlock" else []
        attacks = {"writes": _WRITES, "filling": _FILLING}
        report = await runner.run_attacks(attacks, places=[*folders, *own])
        outside = [path for path in (f"{folder}/planted" for folder in folders) if exists(path)]
        return Target(outside + list_names(open_folder), report)


def test_scratch_space_is_bounded(
    runner: SandboxRunner, target: Target, subtests: pytest.Subtests
) -> None:
    for language, output in target.report.of("filling"):
        with subtests.test(language=language):
            written = int(output.split("written ")[1].split()[0])
            if runner.tier == "bubblewrap":
                assert MIB < written <= LIMITS.scratch_bytes
            else:
                assert written == 0


def test_nothing_but_scratch_space_is_writable(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("writes"):
        with subtests.test(language=language):
            assert " could" not in output
    assert target.written == []


@pytest.mark.usefixtures("little_memory")
async def test_many_empty_files_count_as_memory(runner: SandboxRunner) -> None:
    """Empty files take no scratch space, but memory of the machine."""
    attack = Attack(
        python="""
count = 0
def fill():
    global count
    while count < 400_000:
        os.close(os.open(f"/tmp/{count}", os.O_CREAT | os.O_WRONLY))
        count += 1
attempt("fill", fill)
print("count", count)
""",
        node="",
        bash="",
    )
    outcome = await runner.run_bomb("python", attack, seconds=20)
    if runner.tier == "bubblewrap":
        assert outcome.result.ending == "memory"
        assert b"count" not in outcome.result.output
    else:
        assert b"count 0\n" in outcome.result.output
