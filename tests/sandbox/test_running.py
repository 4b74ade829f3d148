"""Input and output of runs, concurrent runs, clean-up, and machines without a sandbox."""

import asyncio
import fcntl
import itertools
import os
import signal
import struct
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from app.sandbox import box, bubblewrap, landlock, seccomp
from app.sandbox.box import Sandbox, SandboxUnavailable
from app.sandbox.limits import Limits
from app.sandbox.program import Program
from app.sandbox.supervisor import Supervisor
from app.sandbox.watcher import WatchedRun
from app.settings import Settings
from tests.assertions import until
from tests.sandbox.sandbox_runner import (
    LANGUAGES,
    Attack,
    SandboxRunner,
    in_one_tier,
    list_names,
)

_COUNT_INPUT = Attack(
    python="count = len(sys.stdin.buffer.read())\nprint('log'); os.write(3, b'%d' % count)",
    node='console.log("log"); fs.writeSync(3, String(fs.readFileSync(0).length));',
    bash="echo log; wc -c >&3",
)


@in_one_tier
async def test_more_input_than_a_pipe_holds_arrives_and_the_result_is_separate_from_the_log(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language in LANGUAGES:
        code, content = _COUNT_INPUT.code(language, {}), b"x" * 3_000_001
        result = await runner.run(language, code, content, result_on_fd3=True)
        with subtests.test(language=language):
            assert result.output.split() == [b"3000001"]
            assert result.log.split() == [b"log", b"tried"]


_CLOSE_INPUT = Attack(
    python="os.close(0)\nprint('deaf')",
    node='fs.closeSync(0);\nconsole.log("deaf");',
    bash="exec 0<&-\necho deaf",
)


@in_one_tier
async def test_a_program_may_close_its_input(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language in LANGUAGES:
        code = _CLOSE_INPUT.code(language, {})
        result = await runner.run(language, code, b"x" * 3_000_001)
        with subtests.test(language=language):
            assert (result.ending, result.exit_code) == ("exited", 0)
            assert result.output.split() == [b"deaf", b"tried"]


async def test_a_program_may_end_before_its_input_is_written(tmp_path: Path) -> None:
    """The event loop of a busy worker may be that late."""
    process = await asyncio.create_subprocess_exec(
        "/usr/bin/echo", "done", stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    assert process.stdin is not None
    await until(process.stdin.is_closing)
    result = await Supervisor(process, Limits(), WatchedRun(process.pid), str(tmp_path)).wait(
        b"x", 10
    )
    assert (result.ending, result.exit_code, result.output) == ("exited", 0, b"done\n")


@in_one_tier
async def test_without_a_result_on_descriptor_3_it_is_closed(runner: SandboxRunner) -> None:
    result = await runner.run("bash", "echo no >&3 || echo closed")
    assert result.output == b"closed\n"


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


async def test_a_run_inherits_no_descriptor(
    runner: SandboxRunner, open_folder: Path, secret: str
) -> None:
    """The event loop leaves inheritable descriptors open."""
    planted = open_folder / "planted"
    planted.write_text(secret)
    descriptors = [os.open(planted, os.O_RDONLY)]
    os.set_inheritable(descriptors[0], True)  # noqa: FBT003
    descriptors += [fcntl.fcntl(descriptors[0], fcntl.F_DUPFD, least) for least in (300, 800)]
    try:
        result = await runner.run("python", _DESCRIPTORS)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    assert result.output == b"tried\n"


async def test_concurrent_runs_do_not_see_each_other(runner: SandboxRunner) -> None:
    code = """
import os, sys, time
own = sys.stdin.read()
visible = [own]
for folder in ("/tmp", "@runs@", "."):
    try:
        for name in os.listdir(folder):
            if name != "main":
                visible.append(name)
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
            visible.append(pid)
    except OSError:
        pass
time.sleep(0.5)
print(*visible)
""".replace("@runs@", str(runner.home / "runs"))
    before = time.monotonic()
    runs = [runner.run("python", code, f"run-{number}".encode(), 20) for number in range(8)]
    results = await asyncio.gather(*runs)
    assert [result.output.decode().split() for result in results] == [
        [f"run-{n}"] for n in range(8)
    ]
    assert time.monotonic() - before < 10


def test_workers_start_with_different_users(sandbox_settings: Settings) -> None:
    """The kernel counts processes per user: a fork bomb would use up another worker's limit."""
    first = {next(Sandbox(sandbox_settings)._uids) for _ in range(10)}
    assert len(first) > 5


async def test_nothing_of_a_run_is_left_on_disk(runner: SandboxRunner) -> None:
    before = list_names(runner.home / "runs")
    await runner.run("bash", "echo one > /tmp/left; exit 1")
    await runner.run("bash", "sleep 30", seconds=0.2)
    assert list_names(runner.home / "runs") == before


async def test_each_run_finds_its_scratch_space_empty(runner: SandboxRunner) -> None:
    await runner.run("bash", "echo one > /tmp/left-behind")
    result = await runner.run("bash", "cat /tmp/left-behind || echo nothing")
    assert result.output == b"nothing\n"


async def test_code_cannot_change_itself(runner: SandboxRunner) -> None:
    code = """
chmod 700 "$(dirname "$0")" "$0"
echo changed >> "$0" || echo refused
rm -f "$0"
test -e "$0" && echo there
"""
    result = await runner.run("bash", code)
    assert result.output == b"refused\nthere\n"


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


async def test_nothing_runs_before_the_self_test(sandbox_settings: Settings) -> None:
    program = Program(language="bash", files={"main": "echo ran"}, entry="main")
    with pytest.raises(SandboxUnavailable):
        await Sandbox(sandbox_settings).run(program, b"", 5)


async def test_a_tier_that_fails_the_self_test_is_refused(
    runner: SandboxRunner, sandbox_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses the real tier with one restriction removed."""
    command = bubblewrap.command

    def leaky(*arguments: object) -> list[str]:
        return [*command(*arguments), "--ro-bind", "/var", "/var"]  # type: ignore[arg-type]

    monkeypatch.setattr(bubblewrap, "command", leaky)
    sandbox = Sandbox(sandbox_settings)
    if runner.tier == "landlock":
        allow_all = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
        monkeypatch.setattr(seccomp, "program", lambda **_: allow_all)
    assert await sandbox.start((runner.sandbox.tier,)) == "none"


@pytest.mark.parametrize("runner", ["landlock"], indirect=True)
async def test_a_tier_whose_program_is_missing_is_skipped(
    runner: SandboxRunner, sandbox_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "find", lambda: None)
    assert await Sandbox(sandbox_settings).start() == "landlock"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")
@pytest.mark.parametrize("runner", ["landlock"], indirect=True)
async def test_runs_of_two_workers_never_share_a_user(
    runner: SandboxRunner, sandbox_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would share the limit of its processes."""
    other = Sandbox(sandbox_settings)
    assert await other.start(("landlock",)) == "landlock"
    for sandbox in (runner.sandbox, other):
        monkeypatch.setattr(sandbox, "_uids", itertools.count(11))
    code = "import os, time; time.sleep(0.3); print(os.getuid())"
    program = Program(language="python", files={"main": code}, entry="main")
    results = await asyncio.gather(
        *(sandbox.run(program, b"", 20) for sandbox in (runner.sandbox, other) for _ in range(3))
    )
    uids = [result.output.strip() for result in results]
    assert len(set(uids)) == 6


def _start_as(uid: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/usr/bin/true"], user=uid, group=uid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")
@pytest.mark.parametrize("runner", ["landlock"], indirect=True)
async def test_a_user_whose_processes_are_not_all_reaped_runs_nothing_new(
    runner: SandboxRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The init process of a container may be slow to reap, and they count as processes."""
    monkeypatch.setattr(runner.sandbox, "_uids", itertools.count(70))
    ended = _start_as(box._UIDS[70])
    await until(lambda: "Z" in Path(f"/proc/{ended.pid}/stat").read_text().split()[2])
    result = await runner.run("python", "import os; print(os.getuid())")
    ended.wait()
    assert int(result.output) != box._UIDS[70]


async def test_old_folders_of_a_killed_worker_are_removed(
    sandbox_home: Path, sandbox_settings: Settings
) -> None:
    runs = sandbox_home / "runs"
    runs.mkdir(exist_ok=True)
    for name, age in (("abandoned", 7200), ("in-use", 60)):
        (runs / name).mkdir()
        (runs / name / "main").write_text("x")
        (runs / name).chmod(0o500)
        modified_at = time.time() - age
        os.utime(runs / name, (modified_at, modified_at))
    # No run has used the folder since.
    os.utime(runs, (time.time() - 7200,) * 2)
    await Sandbox(sandbox_settings).start(())
    assert not (runs / "abandoned").exists()
    assert (runs / "in-use" / "main").exists()
    (runs / "in-use").chmod(0o700)
    (runs / "in-use" / "main").unlink()
    (runs / "in-use").rmdir()


async def test_old_processes_of_a_killed_worker_are_killed(
    sandbox_home: Path, sandbox_settings: Settings
) -> None:
    runs = sandbox_home / "runs"
    runs.mkdir(exist_ok=True)
    stale = runs / "left-running"
    stale.mkdir()
    os.utime(stale, (time.time() - 7200,) * 2)
    code = "import time; time.sleep(60)"
    orphan = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(stale / "main"))
    await Sandbox(sandbox_settings).start(())
    async with asyncio.timeout(10):
        assert await orphan.wait() == -signal.SIGKILL
    assert not stale.exists()
