"""Code cannot affect other processes or the machine, and no process outlives its run."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

import pytest

from tests.lengths import rounds
from tests.preloaded import PreloadedProcess
from tests.sandbox.sandbox_runner import (
    LANGUAGES,
    PROMPT_SECONDS,
    Attack,
    Report,
    SandboxRunner,
    find_marked_processes,
    new_mark,
    new_secret,
    run_neighbour,
    wait_until,
    wait_until_gone,
)

_SIGNALS = Attack(
    python="""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for pid in (@other@, @tests@, -@other@, os.getppid(), 1):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        attempt("kill", lambda: os.kill(pid, number) or pid)
attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(@other@), signal.SIGKILL))
print("tried", flush=True)
os.kill(-1, signal.SIGKILL)
os.kill(0, signal.SIGKILL)
""",
    node="""
for (const pid of [@other@, @tests@, -@other@, process.ppid, 1]) {
  for (const name of ["SIGTERM", "SIGKILL", "SIGSTOP"]) {
    attempt("kill", () => process.kill(pid, name) && pid);
  }
}
fs.writeSync(1, "tried\\n");
process.kill(-1, "SIGKILL");
process.kill(0, "SIGKILL");
""",
    bash="""
for pid in @other@ @tests@ -@other@ $PPID 1; do
  for name in TERM KILL STOP; do kill -$name -- $pid && echo "kill could $pid"; done
done
echo tried
kill -KILL -- -1
kill -KILL 0
""",
)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


async def test_signals_reach_no_other_process(
    runner: SandboxRunner, same_user: int, subtests: pytest.Subtests
) -> None:
    for language in LANGUAGES:
        with subtests.test(language=language), run_neighbour(same_user, Path("/")) as other:
            code = _SIGNALS.code(language, {"other": other.pid, "tests": os.getpid()})
            result = await runner.run(language, code, seconds=5)
            assert "tried" in result.output.decode().split(), result.log
            assert other.poll() is None
            assert _state(other.pid) == "S"
            assert f"could {other.pid}" not in result.output.decode()


_TRACING = Attack(
    python="""
import ctypes, resource
libc = ctypes.CDLL(None, use_errno=True)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
space = ctypes.create_string_buffer(64)
here, there = Piece(ctypes.addressof(space), 64), Piece(@address@, 64)
for number, name in ((16, "attach"), (0x4206, "seize")):
    print(name, "could" if libc.ptrace(number, @other@, 0, 0) >= 0 else "refused")
read = libc.process_vm_readv(@other@, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
print("read", "could" if read >= 0 else "refused", space.raw)
attempt("mem", lambda: os.pread(os.open("/proc/@other@/mem", os.O_RDONLY), 64, @address@))
attempt("limits", lambda: resource.prlimit(@other@, resource.RLIMIT_NOFILE, (3, 3)))
attempt("pace", lambda: os.setpriority(os.PRIO_PROCESS, @other@, 19))
attempt("pace", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt("affinity", lambda: os.sched_setaffinity(@other@, [0]))
attempt("policy", lambda: os.sched_setscheduler(@other@, os.SCHED_IDLE, os.sched_param(0)))
""",
    node="""
attempt("pace", () => os.setPriority(@other@, 19));
const space = Buffer.alloc(64);
attempt("mem", () => fs.readSync(fs.openSync("/proc/@other@/mem"), space, 0, 64, @address@));
console.log(space.toString());
attempt("debug", () => process._debugProcess(@other@));
console.log(shell("gdb", "-p", "@other@", "-batch"), shell("strace", "-p", "@other@"));
""",
    bash="""
attempt pace renice 19 -p @other@
attempt limits prlimit --pid @other@ --nofile=3:3
attempt affinity taskset -p 1 @other@
attempt policy chrt -i -p 0 @other@
attempt mem dd if=/proc/@other@/mem bs=1 skip=@address@ count=64
""",
)


_NAMESPACES = Attack(
    python="""
import ctypes, stat
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x04000000, 0x08000000, 0x02000000):
    attempt("unshare", lambda: call("unshare", flag))
    attempt("clone", lambda: call("clone", flag | 17, 0, 0, 0, 0))
attempt("clone3", lambda: call("clone3", ctypes.create_string_buffer(b"\\0" * 88), 88))
attempt("mount", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0))
attempt("bind", lambda: call("mount", b"/usr", b"/tmp", 0, 4096, 0))
attempt("remount", lambda: call("mount", b"none", b"/", 0, 32, 0))
attempt("umount", lambda: call("umount2", b"/tmp", 2))
attempt("open tree", lambda: call("open_tree", -100, b"/", 1))
attempt("fsopen", lambda: call("fsopen", b"proc", 0))
attempt("pivot", lambda: call("pivot_root", b"/usr", b"/usr"))
attempt("chroot", lambda: os.chroot("/usr"))
attempt("handle", lambda: call("open_by_handle_at", -100, ctypes.create_string_buffer(64), 0))
for folder in ("/tmp", "."):
    attempt("device", lambda: os.mknod(folder + "/disk", stat.S_IFBLK | 0o666, os.makedev(254, 0)))
    attempt("device", lambda: os.mknod(folder + "/mem", stat.S_IFCHR | 0o666, os.makedev(1, 1)))
attempt("hostname", lambda: call("sethostname", b"planted", 7))
attempt("bpf", lambda: call("bpf", 5, ctypes.create_string_buffer(128), 128))
attempt("perf", lambda: call("perf_event_open", ctypes.create_string_buffer(128), 0, -1, -1, 0))
attempt("userfault", lambda: call("userfaultfd", 1))
attempt("keys", lambda: call("add_key", b"user", b"planted", b"x", 1, -3))
some = ctypes.create_string_buffer(64)
attempt("mounts", lambda: call("listmount", some, some, 8, 0))
""",
    node="""
for (const line of ["unshare -r id -u", "unshare -m true", "unshare -n true",
    "mount -t tmpfs none /tmp", "mount -o remount,rw /", "umount -l /tmp",
    "chroot /usr /bin/true", "mknod /tmp/disk b 254 0", "hostname planted",
    "nsenter -t 1 -m -n true", "bwrap --ro-bind / / true"]) {
  const words = line.split(" ");
  const ended = child.spawnSync(words[0], words.slice(1), { timeout: 3000 });
  console.log(words[0], ended.status === 0 ? "could" : "refused");
}
""",
    bash="""
attempt unshare unshare -r id -u
attempt unshare unshare -m true
attempt unshare unshare -n true
attempt mount mount -t tmpfs none /tmp
attempt remount mount -o remount,rw /
attempt umount umount -l /tmp
attempt chroot chroot /usr /bin/true
attempt device mknod /tmp/disk b 254 0
attempt hostname hostname planted
attempt nsenter nsenter -t 1 -m -n true
attempt bwrap bwrap --ro-bind / / true
""",
)


class Target(NamedTuple):
    """A process of the user that attacks run as, what it was before, and what they printed."""

    process: Popen[bytes]
    secret: str
    limits: str
    priority: int
    host_name: str
    report: Report


@pytest.fixture(scope="module")
async def target(runner: SandboxRunner) -> AsyncIterator[Target]:
    secret, host_name = new_secret(), os.uname().nodename
    async with runner.as_one_user() as uid:
        with run_neighbour(uid, Path("/"), PARLEY_PLANTED=secret) as other:
            proc = Path(f"/proc/{other.pid}")
            # The address of its environment, which the kernel shows to privileged users.
            address = int((proc / "stat").read_text().rpartition(")")[2].split()[47])
            limits = (proc / "limits").read_text()
            priority = os.getpriority(os.PRIO_PROCESS, other.pid)
            attacks = {"tracing": _TRACING, "namespaces": _NAMESPACES}
            report = await runner.run_attacks(attacks, other=other.pid, address=address)
            yield Target(other, secret, limits, priority, host_name, report)


def test_a_process_of_the_same_user_is_neither_traced_nor_slowed(
    target: Target, subtests: pytest.Subtests
) -> None:
    for language, output in target.report.of("tracing"):
        with subtests.test(language=language):
            assert target.secret not in output
            assert not re.search(
                r"^(attach|seize|read|mem|limits|affinity|policy|debug) could",
                output,
                re.MULTILINE,
            )
    pid = target.process.pid
    assert "TracerPid:\t0" in Path(f"/proc/{pid}/status").read_text()
    assert Path(f"/proc/{pid}/limits").read_text() == target.limits
    assert os.getpriority(os.PRIO_PROCESS, pid) == target.priority
    assert os.sched_getaffinity(pid) == os.sched_getaffinity(0)
    assert os.sched_getscheduler(pid) == os.SCHED_OTHER


def test_no_namespace_is_created_or_entered(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("namespaces"):
        with subtests.test(language=language):
            assert " could" not in output
    assert os.uname().nodename == target.host_name


_LEFT_BEHIND = Attack(
    python="""
import subprocess
if os.fork() == 0:
    try:
        os.setsid()
    except OSError:
        pass
    __import__("time").sleep(30)
subprocess.Popen(["bash", "-c", "trap '' TERM HUP; sleep 30; : @mark@"])
""",
    node="""
const options = { detached: true, stdio: "inherit" };
attempt("detached", () => child.spawn("bash", ["-c", "sleep 30; : @mark@"], options).unref());
const same = { stdio: "inherit" };
child.spawn("bash", ["-c", "trap '' TERM HUP; sleep 30; : @mark@"], same).unref();
""",
    bash="""
(trap '' TERM HUP; sleep 30; : @mark@) &
nohup bash -c "sleep 30; : @mark@" &
setsid bash -c "sleep 30; : @mark@" &
disown -a
""",
)


async def test_background_processes_end_with_the_run_and_do_not_prolong_it(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_LEFT_BEHIND, seconds=20)).items():
        with subtests.test(language=language):
            assert (outcome.result.ending, outcome.result.exit_code) == ("exited", 0)
            assert outcome.seconds < PROMPT_SECONDS


_WAITING = Attack(
    python="""
for _ in range(5):
    if os.fork() == 0:
        break
__import__("time").sleep(30)
""",
    node="""
for (let i = 0; i < 5; i++) child.spawn("bash", ["-c", "sleep 30; : @mark@"]);
await new Promise((resolve) => setTimeout(resolve, 30000));
""",
    bash="""
for i in {1..5}; do (sleep 30; : @mark@) & done
wait
""",
)


async def test_a_timeout_ends_all_processes_of_the_run(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    for language, outcome in (await runner.run_bombs(_WAITING, seconds=2)).items():
        with subtests.test(language=language):
            assert outcome.result.ending == "timeout"
            assert outcome.max_processes >= 6
            assert outcome.seconds < PROMPT_SECONDS


async def test_a_cancelled_run_ends_all_of_its_processes(runner: SandboxRunner) -> None:
    mark = new_mark()
    code = _WAITING.code("bash", {"mark": mark})
    task = asyncio.create_task(runner.run("bash", code, b"", 30, mark))
    assert await wait_until(lambda: len(find_marked_processes(mark)) >= 6)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_until_gone(mark)


@contextmanager
def _busy_processors() -> Iterator[None]:
    """Makes the steps of other processes take longer."""
    count = 2 * (os.cpu_count() or 1)
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(Popen(["/usr/bin/bash", "-c", "while :; do :; done"]))
            stack.callback(process.kill)
        yield


async def test_a_run_that_is_cancelled_at_its_start_leaves_no_process(
    runner: SandboxRunner,
) -> None:
    """Also between the steps of the sandbox, whose processes leave their group on the way."""
    mark = new_mark()
    with _busy_processors():
        for _ in range(rounds(10, 400)):
            task = asyncio.create_task(runner.run("bash", "sleep 30; true", b"", 30, mark))
            while not find_marked_processes(mark):  # noqa: ASYNC110  # as early as can be
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert find_marked_processes(mark) == []


_WORKER = """
import asyncio, sys
from pathlib import Path
from app.sandbox.box import Program, Sandbox
from app.settings import Settings

async def main(home, tier, mark, code):
    sandbox = Sandbox(Settings(data_dir=Path(home) / "data", sandbox_dir=Path(home)))
    await sandbox.start((tier,))
    files = {"main": code}
    program = Program(language="bash", files=files, entry="main", arguments=(mark,))
    await sandbox.run(program, b"", 60)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_no_run_outlives_a_worker_that_is_killed(runner: SandboxRunner) -> None:
    mark = new_mark()
    code = _WAITING.code("bash", {"mark": "waiting"})
    arguments = (str(runner.home), runner.tier, mark, code)
    worker = PreloadedProcess("-c", _WORKER, *arguments, env=os.environ)
    try:
        # The run's starters, the code and its five children.
        assert await wait_until(lambda: len(find_marked_processes(mark)) >= 6, 20)
    finally:
        worker.kill()
        worker.wait()
    await wait_until_gone(mark)


async def test_exit_codes_and_signals_are_the_same_in_both_tiers(runner: SandboxRunner) -> None:
    for code, expected in (("exit 7", 7), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)):
        result = await runner.run("bash", code)
        assert (result.ending, result.exit_code) == ("exited", expected)


async def test_cpu_time_is_limited_by_the_kernel_as_well(runner: SandboxRunner) -> None:
    """The limit is two seconds above the timeout, in case the supervisor has stopped."""
    result = await runner.run("bash", "ulimit -t; ulimit -c; ulimit -n", seconds=5)
    assert result.ending == "exited"
    assert result.output.split() == [b"7", b"0", b"256"]
