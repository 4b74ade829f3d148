"""Code cannot make the kernel spend memory that no limit counts, or time of the whole machine."""

import pytest

from tests.sandbox.sandbox_runner import Attack, Report, SandboxRunner

_UNCOUNTED = """
import array, ctypes, fcntl, mmap, select, signal, socket, struct, time
libc = ctypes.CDLL(None, use_errno=True)
long = ctypes.c_long
def rulesets():
    for _ in range(40):
        call("landlock_create_ruleset", struct.pack("=Q", 4), ctypes.c_size_t(8), 0)
attempt("rulesets", rulesets)
attempt("rule", lambda: call("landlock_add_rule", 3, 1, struct.pack("=Qi", 4, 3), 0))
attempt("restrict", lambda: call("landlock_restrict_self", 3, 0))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
filter_ = Filter(1, struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000))
attempt("filter", lambda: call("prctl", 22, 2, ctypes.byref(filter_), long(0), long(0)))
attempt("filter", lambda: call("seccomp", 1, 0, ctypes.byref(filter_)))
left, right = socket.socketpair()
ends = os.pipe()
packed = array.array("i", ends).tobytes()
attempt("in flight", lambda: left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)]))
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
vector = struct.pack("=QQ", address, 1)
attempt("gift", lambda: call("vmsplice", ends[1], vector, ctypes.c_size_t(1), 2))
file = os.open("/usr/bin/env", os.O_RDONLY)
attempt("page", lambda: os.sendfile(left.fileno(), file, 0, 1))
attempt("page", lambda: os.splice(file, ends[1], 1, offset_src=0))
attempt("buffer", lambda: left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20))
attempt("pipe", lambda: fcntl.fcntl(ends[0], 1031, 1 << 20))
attempt("lease", lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK))
attempt("watch", lambda: call("inotify_init1", 0))
attempt("watch", lambda: fcntl.fcntl(os.open("/usr", os.O_RDONLY), fcntl.F_NOTIFY, 2))
attempt("pinned", lambda: call("mlockall", 1))
attempt("pinned", lambda: call("mlock", ctypes.c_void_p(address), ctypes.c_size_t(4096)))
attempt("merged", lambda: page.madvise(12))
attempt("hidden", lambda: call("prctl", 4, long(0), long(0), long(0), long(0)))
attempt("core", lambda: call("prctl", 62, 1, long(0), long(0), long(0)))
attempt("named", lambda: call("prctl", 0x53564D41, 0, ctypes.c_void_p(address), 4096, b"x"))
attempt("cached", lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED))
attempt("sync", lambda: call("sync"))
attempt("sync", lambda: call("syncfs", file))
attempt("barrier", lambda: call("membarrier", 1, 0, 0))
attempt("session", lambda: call("setsid"))
attempt("interface", lambda: fcntl.ioctl(left, 0x8912, b"\\0" * 16))
attempt("newer", lambda: libc.syscall(600) + 1 or 1 / 0)
"""


# Each of these calls would otherwise flush the disk of the machine.
_FLUSHES = """
import time
file, start = os.open("/usr/bin/env", os.O_RDONLY), time.process_time()
for _ in range(20000):
    os.fsync(file)
    os.fdatasync(file)
print("flushed in time" if time.process_time() - start < 3 else "flushed")
"""


_TIMERS = """
import ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
timers, count = ctypes.c_void_p(), 0
while count < 5000 and libc.timer_create(1, None, ctypes.byref(timers)) == 0:
    count += 1
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
queued = 0
while queued < 5000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) == 0:
    queued += 1
print("bounded", count, queued)
import resource
for name in ("MEMLOCK", "MSGQUEUE", "SIGPENDING", "STACK", "NOFILE"):
    print(name, *resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
"""


_ORDINARY = Attack(
    python="""
import asyncio, concurrent.futures, shutil, sqlite3, subprocess, tempfile, threading
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    return (await process.communicate(b"piped"))[0]
print(asyncio.run(main()))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(len, ["ab", "cd"])))
sqlite3.connect(":memory:").execute("CREATE TABLE t (a)")
if os.environ["HOME"] == "/tmp":
    shutil.copy2("/usr/bin/env", "/tmp/env")
    shutil.copyfile("/tmp/env", "/tmp/other")
    base = sqlite3.connect("/tmp/base")
    base.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1);")
    base.commit()
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x"); file.flush(); os.fsync(file.fileno())
    assert os.path.getsize("/tmp/other") == os.path.getsize("/usr/bin/env")
print(subprocess.run("sort < /usr/share/common-licenses/BSD | head -n 3 | wc -l", shell=True,
    capture_output=True, text=True).stdout)
""",
    node="""
const { Worker } = require("worker_threads");
await new Promise((resolve, reject) => {
  const worker = new Worker("require('worker_threads').parentPort.postMessage(7)", { eval: true });
  worker.on("message", (value) => { console.log("piped", value); resolve(); });
  worker.on("error", reject);
});
await new Promise((resolve) => {
  const other = child.spawn("cat", { stdio: ["pipe", "pipe", "inherit"] });
  other.stdout.on("data", (data) => console.log(String(data)));
  other.on("close", resolve);
  other.stdin.end("piped");
});
await new Promise((resolve, reject) => {
  const code = "process.on('message', (m) => { process.send(m + 1); process.disconnect(); })";
  const other = child.fork("-", [], { execPath: process.execPath, execArgv: ["-e", code] });
  other.on("message", (value) => console.log("sent back", value));
  other.on("error", reject);
  other.on("exit", resolve);
  other.send(41);
});
const crypto = require("crypto"), zlib = require("zlib");
await new Promise((resolve) => crypto.pbkdf2("a", "b", 10, 16, "sha256", resolve));
zlib.gunzipSync(zlib.gzipSync("text"));
if (process.env.HOME !== "/tmp") return;
fs.copyFileSync("/usr/bin/env", "/tmp/env");
await fs.promises.cp("/tmp/env", "/tmp/other");
const file = await fs.promises.open("/tmp/other", "r+");
await file.sync();
await file.close();
""",
    bash="""
echo piped | cat | tr a-z A-Z | tr A-Z a-z
sort /usr/share/common-licenses/BSD | head -n 3 | wc -l
while read -r line; do count=$((count + 1)); done < <(find /usr/bin -name 'e*')
coproc cat
echo through >&"${COPROC[1]}"
read -r answer <&"${COPROC[0]}"
(sleep 0.1 & wait) && timeout 5 nice true
grep -q Redistribution <<< "$(cat /usr/share/common-licenses/BSD)" && echo found
if [ "$HOME" = /tmp ]; then cp /usr/bin/env /tmp/env && cmp /usr/bin/env /tmp/env; fi
echo "$answer $count"
""",
)


@pytest.fixture(scope="module")
async def report(runner: SandboxRunner) -> Report:
    attacks = {"ordinary": _ORDINARY}
    for name, code in (("uncounted", _UNCOUNTED), ("flushes", _FLUSHES), ("timers", _TIMERS)):
        attacks[name] = Attack(python=code, node="", bash="")
    return await runner.run_attacks(attacks)


def test_calls_that_no_limit_bounds_are_refused(report: Report) -> None:
    ((_, output),) = report.of("uncounted")
    assert " could" not in output


def test_flushing_a_file_that_is_only_read_does_nothing(report: Report) -> None:
    ((_, output),) = report.of("flushes")
    assert "flushed in time" in output


def test_timers_and_signals_that_wait_are_bounded(runner: SandboxRunner, report: Report) -> None:
    ((_, output),) = report.of("timers")
    words = output.split()
    assert 0 < int(words[words.index("bounded") + 1]) <= runner.sandbox.limits.pending_signals
    assert int(words[words.index("bounded") + 2]) <= runner.sandbox.limits.pending_signals
    for name in ("MEMLOCK", "MSGQUEUE"):
        at = words.index(name)
        assert words[at + 1 : at + 3] == ["0", "0"]
    at = words.index("STACK")
    assert 0 < int(words[at + 2]) <= runner.sandbox.limits.stack_bytes


def test_ordinary_programs_need_none_of_these(report: Report, subtests: pytest.Subtests) -> None:
    for language, output in report.of("ordinary"):
        with subtests.test(language=language):
            assert "piped" in output
            assert "Error" not in output, output
