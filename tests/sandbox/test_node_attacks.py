"""Attacks that JavaScript offers beyond those of the other languages."""

import asyncio
import re

import pytest

from app.sandbox.limits import MIB, Limits
from tests.sandbox.sandbox_runner import PROMPT_SECONDS, Attack, SandboxRunner

LIMITS = Limits()

# Each prints `NAME could …` when it reaches anything outside the run.
_REACHING = """
const inspector = require("inspector"), v8 = require("v8"), cluster = require("cluster");
const tls = require("tls"), http2 = require("http2"), dgram = require("dgram");
const failing = (name, emitter) => new Promise((resolve) => {
  const end = (word) => { console.log(name, word); resolve(); };
  emitter.on("error", (error) => end("refused " + error.code));
  for (const event of ["listening", "connect", "secureConnect"]) {
    emitter.on(event, () => end("could " + event));
  }
  setTimeout(() => end("waited"), 2000).unref();
});
// The port of the debugger, opened by a call, by a signal and for a child.
attempt("inspector", () => { inspector.open(0, "127.0.0.1"); if (!inspector.url()) throw {}; });
process.kill(process.pid, "SIGUSR1");
await new Promise((resolve) => setTimeout(resolve, 200));
console.log("inspector", inspector.url() ? "could" : "refused");
const words = ["--inspect=0", "-e", "1"];
const debugged = child.spawnSync(process.execPath, words, { encoding: "utf8" });
console.log("inspector", /Debugger listening/.test(debugged.stderr) ? "could" : "refused");
// Servers and clients of every kind.
await failing("server", net.createServer().listen(0, "127.0.0.1"));
await failing("server", net.createServer().listen("/tmp/planted.sock"));
await failing("server", net.createServer().listen("\\0planted"));
await failing("server", http2.createServer().listen(0));
await failing("client", tls.connect(443, "127.0.0.1"));
await failing("client", http2.connect("http://127.0.0.1:9"));
const datagram = dgram.createSocket("udp4");
try { datagram.bind(0); await failing("datagram", datagram); } catch { /* refused */ }
attempt("websocket", () => {
  const socket = new WebSocket("ws://127.0.0.1:9");
  socket.onerror = () => {};
  throw {};
});
// The internal bindings.
for (const name of ["tcp_wrap", "pipe_wrap", "udp_wrap", "spawn_sync", "process_wrap"]) {
  attempt("binding", () => {
    const { TCP, Pipe, UDP } = process.binding(name);
    const handle = TCP ? new TCP(1) : Pipe ? new Pipe(1) : new UDP();
    const error = TCP ? handle.bind("127.0.0.1", 0) : Pipe ? handle.bind("\\0x")
      : handle.bind("127.0.0.1", 0, 0);
    if (error) throw { code: error };
  });
}
// Files of the process and the machine, also by ways that are no reads.
for (const place of ["/proc/self/mem", "/proc/self/environ", "/proc/1/environ", "/proc/kcore",
    "/proc/kallsyms", "/sys/kernel/notes", "/dev/mem", "/etc/passwd", "/proc/self/fd/3"]) {
  attempt("read", () => fs.readFileSync(place).length);
  attempt("stream", () => fs.closeSync(fs.openSync(place, fs.constants.O_RDWR)));
  attempt("load", () => process.dlopen({ exports: {} }, place));
  attempt("load", () => require(place));
  attempt("open", () => fs.opendirSync(path.dirname(place)).closeSync()
    || (path.dirname(place) === "/proc/self/fd" ? 1 : (() => { throw {}; })()));
}
attempt("sqlite", () => {
  const { DatabaseSync } = require("node:sqlite");
  return new DatabaseSync("/var/tmp/planted.db").exec("CREATE TABLE t (a)");
});
attempt("watch", () => fs.watch("/usr", () => {}).close());
attempt("snapshot", () => v8.writeHeapSnapshot("/usr/planted"));
attempt("report", () => { if (!process.report.writeReport("/usr/planted")) throw {}; });
const report = process.report.getReport();
console.log("interfaces", (report.header.networkInterfaces || []).length ? "could" : "refused");
// Rights and priorities.
for (const options of [{ uid: 0 }, { gid: 0 }]) {
  attempt("spawn", () => {
    const ended = child.spawnSync("true", options);
    if (ended.error) throw ended.error;
  });
}
for (const level of [-20, -1, 0, 19]) attempt("priority", () => os.setPriority(level));
for (const pid of [1, process.ppid]) attempt("priority", () => os.setPriority(pid, 19));
attempt("cluster", () => cluster.setupPrimary({ exec: "/etc/passwd" }) || cluster.fork().x.y);
"""


async def test_nothing_outside_is_reached_from_javascript(runner: SandboxRunner) -> None:
    output = await runner.run_attack("node", Attack(python="", node=_REACHING, bash=""))
    assert not re.findall(r"^\w+ could.*$", output, re.MULTILINE)


_MEMORY = {
    "wasm": """
const memories = [];
for (let i = 0; i < 6; i++) {
  const memory = new WebAssembly.Memory({ initial: 1024, maximum: 1024 });
  new Uint8Array(memory.buffer).fill(1);
  memories.push(memory);
  await new Promise((resolve) => setTimeout(resolve, 50));
}
""",
    "shared": """
const buffers = [];
for (let i = 0; i < 6; i++) {
  const buffer = new SharedArrayBuffer(64 << 20);
  new Uint8Array(buffer).fill(1);
  buffers.push(buffer);
  await new Promise((resolve) => setTimeout(resolve, 50));
}
""",
    "workers": """
const { Worker } = require("worker_threads");
const code = "const m = Buffer.alloc(50 << 20, 1); setTimeout(() => m, 20000)";
const options = { eval: true, resourceLimits: { maxOldGenerationSizeMb: 8192 } };
for (let i = 0; i < 8; i++) new Worker(code, options);
await new Promise((resolve) => setTimeout(resolve, 15000));
""",
}


@pytest.mark.usefixtures("little_memory")
async def test_no_kind_of_memory_of_javascript_is_unbounded(
    runner: SandboxRunner, subtests: pytest.Subtests
) -> None:
    attacks = [
        Attack(python="", node=code + 'console.log("allocated");', bash="")
        for code in _MEMORY.values()
    ]
    outcomes = await asyncio.gather(*(runner.run_bomb("node", one, 20) for one in attacks))
    for name, outcome in zip(_MEMORY, outcomes, strict=True):
        with subtests.test(kind=name):
            assert b"allocated" not in outcome.result.output
            # Killed by the watcher, or ended by V8 when the kernel gave no more.
            assert outcome.result.ending == "memory" or outcome.result.exit_code != 0
            assert outcome.result.ending != "timeout"


async def test_threads_of_javascript_are_bounded(runner: SandboxRunner) -> None:
    """The kernel counts threads as processes."""
    attack = Attack(
        python="",
        node="""
const { Worker } = require("worker_threads");
let online = 0;
for (let i = 0; i < 200; i++) {
  const worker = new Worker("setTimeout(() => 0, 20000)", { eval: true });
  worker.on("error", () => {});
  worker.on("online", () => fs.writeSync(1, `online ${++online}\\n`));
}
await new Promise((resolve) => setTimeout(resolve, 15000));
""",
        bash="",
    )
    outcome = await runner.run_bomb("node", attack, seconds=2)
    assert outcome.seconds < PROMPT_SECONDS + 2
    assert outcome.result.output.count(b"online") < LIMITS.processes
    assert len(outcome.result.output) < MIB
