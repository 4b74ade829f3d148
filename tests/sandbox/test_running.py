"""What a run is given and gives back, many at once, and when there is no cage at all."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from app.kit.sandbox import bubblewrap, landlock
from app.kit.sandbox.box import Sandbox, SandboxUnavailable
from app.kit.sandbox.program import Language, Program
from app.settings import Settings
from tests.processes import ROOT
from tests.sandbox.cage import Attack, Cage, names_in

_COUNTING = Attack(
    python="print(len(sys.stdin.buffer.read()))",
    node="console.log(fs.readFileSync(0).length);",
    bash="wc -c",
)


async def test_more_input_than_a_pipe_holds_arrives(cage: Cage, language: Language) -> None:
    given = b"x" * 3_000_001
    ran = await cage.run(language, _COUNTING.code(language, {}), given)
    assert ran.output.split() == [b"3000001", b"tried"]


_DEAF = Attack(
    python="os.close(0)\nprint('deaf')",
    node='fs.closeSync(0);\nconsole.log("deaf");',
    bash="exec 0<&-\necho deaf",
)


async def test_a_program_need_not_listen(cage: Cage, language: Language) -> None:
    ran = await cage.run(language, _DEAF.code(language, {}), b"x" * 3_000_001)
    assert (ran.ending, ran.exit_code) == ("exited", 0)
    assert ran.output.split() == [b"deaf", b"tried"]


_APART = Attack(
    python="print('log'); os.write(3, b'result')",
    node='console.log("log"); fs.writeSync(3, "result");',
    bash="echo log; echo -n result >&3",
)


async def test_a_result_apart_is_not_mixed_with_what_is_printed(
    cage: Cage, language: Language
) -> None:
    ran = await cage.run(language, _APART.code(language, {}), result_on_fd3=True)
    assert ran.output == b"result"
    assert ran.log.split() == [b"log", b"tried"]


async def test_without_a_result_apart_there_is_no_third_descriptor(cage: Cage) -> None:
    ran = await cage.run("bash", "echo no >&3 || echo closed")
    assert ran.output == b"closed\n"


_DESCRIPTORS = """
import os
for number in range(3, 1000):
    try:
        print(number, os.pread(number, 100, 0))
    except OSError as error:
        if error.errno != 9:
            print(number, error)
print("tried")
"""


async def test_a_run_inherits_no_descriptor(cage: Cage, open_folder: Path, secret: str) -> None:
    planted = open_folder / "planted"
    planted.write_text(secret)
    descriptor = os.open(planted, os.O_RDONLY)
    os.set_inheritable(descriptor, True)  # noqa: FBT003
    try:
        ran = await cage.run("python", _DESCRIPTORS)
    finally:
        os.close(descriptor)
    assert ran.output == b"tried\n"


_WORKER = """
import os, sys, uvloop
from pathlib import Path
from app.kit.sandbox.box import Program, Sandbox
from app.settings import Settings

async def main(home, tier, planted, code):
    sandbox = Sandbox(Settings(data_dir=Path(home) / "data", sandbox_dir=Path(home)))
    assert await sandbox.start((tier,)) == tier
    descriptor = os.open(planted, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    for number in (150, 300, 800):
        os.dup2(descriptor, number)
    program = Program(language="python", files={"main": code}, entry="main")
    ran = await sandbox.run(program, b"", 10)
    sys.stdout.write(ran.output.decode())

uvloop.run(main(*sys.argv[1:]))
"""


async def test_a_run_of_a_worker_inherits_no_descriptor(
    cage: Cage, open_folder: Path, secret: str
) -> None:
    """Workers run on uvloop, which closes none by itself."""
    (open_folder / "planted").write_text(secret)
    words = [str(cage.home), cage.tier, str(open_folder / "planted"), _DESCRIPTORS]
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WORKER, *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert (await worker.communicate())[0] == b"tried\n"


async def test_sixteen_at_once_do_not_see_each_other(cage: Cage) -> None:
    code = """
import os, sys, time
own = sys.stdin.read()
found = [own]
for folder in ("/tmp", "@runs@", "."):
    try:
        for name in os.listdir(folder):
            if name != "main":
                found.append(name)
    except OSError:
        pass
try:
    open("/tmp/" + own, "w").close()
except OSError:
    pass
for pid in range(2, 400):
    try:
        os.kill(pid, 0)
        if pid not in (os.getpid(), os.getppid()):
            found.append(pid)
    except OSError:
        pass
time.sleep(0.5)
print(*found)
""".replace("@runs@", str(cage.home / "runs"))
    before = time.monotonic()
    runs = [cage.run("python", code, f"run-{number}".encode(), 20) for number in range(16)]
    ran = await asyncio.gather(*runs)
    assert [one.output.decode().split() for one in ran] == [[f"run-{n}"] for n in range(16)]
    assert time.monotonic() - before < 10


def test_two_workers_do_not_begin_with_the_same_user(sandbox_settings: Settings) -> None:
    """The kernel counts processes by user: one worker's fork bomb would be felt by the other."""
    first = {next(Sandbox(sandbox_settings)._uids) for _ in range(10)}
    assert len(first) > 5


async def test_nothing_of_a_run_is_left_on_disk(cage: Cage) -> None:
    before = names_in(cage.home / "runs")
    await cage.run("bash", "echo one > /tmp/left; exit 1")
    await cage.run("bash", "sleep 30", seconds=0.2)
    assert names_in(cage.home / "runs") == before


async def test_each_run_finds_its_scratch_space_empty(cage: Cage) -> None:
    await cage.run("bash", "echo one > /tmp/left-behind")
    ran = await cage.run("bash", "cat /tmp/left-behind || echo nothing")
    assert ran.output == b"nothing\n"


async def test_code_cannot_change_itself(cage: Cage) -> None:
    code = """
chmod 700 "$(dirname "$0")" "$0"
echo changed >> "$0" || echo refused
rm -f "$0"
test -e "$0" && echo there
"""
    ran = await cage.run("bash", code)
    assert ran.output == b"refused\nthere\n"


async def test_without_any_tier_nothing_runs(
    sandbox_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "find", lambda: None)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    sandbox = Sandbox(sandbox_settings)
    assert await sandbox.start() == "none"
    program = Program(language="bash", files={"main": "echo ran"}, entry="main")
    with pytest.raises(SandboxUnavailable):
        await sandbox.run(program, b"", 5)


async def test_nothing_runs_before_the_cage_was_tested(sandbox_settings: Settings) -> None:
    program = Program(language="bash", files={"main": "echo ran"}, entry="main")
    with pytest.raises(SandboxUnavailable):
        await Sandbox(sandbox_settings).run(program, b"", 5)


async def test_a_tier_that_shows_the_machine_is_refused(
    cage: Cage, sandbox_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real one with a hole in it."""
    command = bubblewrap.command

    def leaky(*words: object) -> list[str]:
        return [*command(*words), "--ro-bind", "/var", "/var"]  # type: ignore[arg-type]

    monkeypatch.setattr(bubblewrap, "command", leaky)
    sandbox = Sandbox(sandbox_settings)
    if cage.tier == "landlock":
        monkeypatch.setattr("app.kit.sandbox.seccomp._REFUSED", {})
    assert await sandbox.start((cage.sandbox.tier,)) == "none"


@pytest.mark.parametrize("cage", ["landlock"], indirect=True)
async def test_a_tier_whose_program_is_missing_is_passed_over(
    cage: Cage, sandbox_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "find", lambda: None)
    assert await Sandbox(sandbox_settings).start() == "landlock"


async def test_what_a_killed_worker_left_on_disk_is_removed_in_time(
    sandbox_home: Path, sandbox_settings: Settings
) -> None:
    runs = sandbox_home / "runs"
    runs.mkdir(exist_ok=True)
    for name, age in (("abandoned", 7200), ("in-use", 60)):
        (runs / name).mkdir()
        (runs / name / "main").write_text("x")
        (runs / name).chmod(0o500)
        then = time.time() - age
        os.utime(runs / name, (then, then))
    # Nobody has worked here since.
    os.utime(runs, (time.time() - 7200,) * 2)
    await Sandbox(sandbox_settings).start(())
    assert not (runs / "abandoned").exists()
    assert (runs / "in-use" / "main").exists()
    (runs / "in-use").chmod(0o700)
    (runs / "in-use" / "main").unlink()
    (runs / "in-use").rmdir()


async def test_what_a_killed_worker_left_running_is_ended_in_time(
    sandbox_home: Path, sandbox_settings: Settings
) -> None:
    runs = sandbox_home / "runs"
    runs.mkdir(exist_ok=True)
    left = runs / "left-running"
    left.mkdir()
    os.utime(left, (time.time() - 7200,) * 2)
    code = "import time; time.sleep(60)"
    orphan = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(left / "main"))
    await Sandbox(sandbox_settings).start(())
    async with asyncio.timeout(10):
        assert await orphan.wait() == -signal.SIGKILL
    assert not left.exists()
