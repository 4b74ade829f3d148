"""Code in the sandbox has no network and reaches no socket of the machine."""

import asyncio
import os
import re
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from tests.sandbox.sandbox_runner import (
    Attack,
    Report,
    SandboxRunner,
    create_open_folder,
    find_marked_processes,
    new_mark,
    wait_until,
    wait_until_gone,
)


class Listeners:
    """Sockets of each kind on this machine, open to every user."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.stream, self.datagram = str(folder / "stream"), str(folder / "datagram")
        self.name = f"parley-{uuid4().hex}"
        addresses: list[tuple[int, int, object]] = [
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, self.stream),
            (socket.AF_UNIX, socket.SOCK_DGRAM, self.datagram),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.name}"),
            (socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{self.name}-datagram"),
        ]
        self.all: list[socket.socket] = []
        for family, kind, address in addresses:
            listener = stack.enter_context(socket.socket(family, kind))
            listener.bind(address)  # type: ignore[arg-type]
            listener.settimeout(0)
            if kind == socket.SOCK_STREAM:
                listener.listen()
            self.all.append(listener)
        for path in (self.stream, self.datagram):
            os.chmod(path, 0o777)  # noqa: PTH101
        self.tcp: int = self.all[0].getsockname()[1]
        self.udp: int = self.all[1].getsockname()[1]

    def find_reached(self) -> list[str]:
        """Returns the sockets that received a connection or a datagram."""
        reached = []
        for listener in self.all:
            try:
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(100)
            except BlockingIOError:
                continue
            name = f"{listener.family.name} {listener.type.name} {listener.getsockname()!r}"
            reached.append(name)
        return reached

    def values(self) -> dict[str, object]:
        return {
            "tcp": self.tcp,
            "udp": self.udp,
            "stream": self.stream,
            "datagram": self.datagram,
            "name": self.name,
        }


_SPEAKING = Attack(
    python="""
import socket, urllib.request
def send(family, kind, place, how):
    with socket.socket(family, kind) as sock:
        sock.settimeout(2)
        return sock.connect(place) if how == "connect" else sock.sendto(b"hello", place)
inet, unix = socket.AF_INET, socket.AF_UNIX
stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
attempt("tcp", lambda: send(inet, stream, ("127.0.0.1", @tcp@), "connect"))
attempt("http", lambda: urllib.request.urlopen("http://127.0.0.1:@tcp@/", timeout=2))
attempt("fast open", lambda: socket.socket(inet, stream).sendto(
    b"hello", socket.MSG_FASTOPEN, ("127.0.0.1", @tcp@)))
attempt("udp", lambda: send(inet, datagram, ("127.0.0.1", @udp@), "send"))
attempt("udp6", lambda: send(socket.AF_INET6, datagram, ("::ffff:127.0.0.1", @udp@), "send"))
attempt("stream", lambda: send(unix, stream, "@stream@", "connect"))
attempt("datagram", lambda: send(unix, datagram, "@datagram@", "send"))
attempt("abstract", lambda: send(unix, stream, "\\0@name@", "connect"))
attempt("abstract", lambda: send(unix, datagram, "\\0@name@-datagram", "send"))
""",
    node="""
const dgram = require("dgram");
function reached(options) {
  return new Promise((resolve) => {
    const sock = net.connect(options);
    sock.on("connect", () => resolve("could"));
    sock.on("error", (error) => resolve("refused " + error.code));
    setTimeout(() => resolve("waited"), 2000).unref();
  });
}
console.log("tcp", await reached({ host: "127.0.0.1", port: @tcp@ }));
console.log("stream", await reached({ path: "@stream@" }));
console.log("abstract", await reached({ path: "\\0@name@" }));
console.log("http", await fetch("http://127.0.0.1:@tcp@/", { signal: AbortSignal.timeout(2000) })
  .then(() => "could", (error) => "refused " + error.message));
console.log("udp", await new Promise((resolve) => {
  try {
    const sock = dgram.createSocket("udp4");
    sock.on("error", (error) => resolve("refused " + error.code));
    sock.send("hello", @udp@, "127.0.0.1", (error) => {
      resolve(error ? "refused " + error.code : "could");
      sock.close();
    });
  } catch (error) { resolve("refused " + error.code); }
}));
""",
    bash="""
attempt tcp sh -c ": > /dev/null" && (exec 5<>/dev/tcp/127.0.0.1/@tcp@ && echo tcp reached)
(exec 5<>/dev/udp/127.0.0.1/@udp@ && echo hello >&5 && echo udp reached)
attempt curl curl -s -m 2 http://127.0.0.1:@tcp@/
attempt curl curl -s -m 2 --unix-socket @stream@ http://planted/
attempt curl curl -s -m 2 --abstract-unix-socket @name@ http://planted/
python3 -c '
import socket
for place in ("@stream@", chr(0) + "@name@"):
    try:
        socket.socket(socket.AF_UNIX).connect(place)
        print("unix reached")
    except OSError as error:
        print(error)
'
""",
)


# A datagram socket accepts an address per message, even as part of a pair.
_PAIRS = Attack(
    python="""
import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
    for place in ("@datagram@", "\\0@name@-datagram", "@stream@", "\\0@name@"):
        attempt(kind.name, lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"x", place))
        attempt(kind.name, lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendmsg(
            [b"x"], [], 0, place))
one, other = socket.socketpair()
one.send(b"between us")
print("received", other.recv(100))
""",
    node="",
    bash="",
)
_NAMES = Attack(
    python="""
import socket
for name in ("localhost", "parley-planted.invalid", os.uname().nodename):
    attempt("name", lambda: socket.getaddrinfo(name, 80))
""",
    node="""
const dns = require("dns").promises;
for (const name of ["localhost", "parley-planted.invalid"]) {
  console.log("name", await dns.lookup(name).then((at) => "could " + at.address, (e) => e.code));
}
const resolver = new dns.Resolver({ timeout: 300, tries: 1 });
resolver.setServers(["127.0.0.1:@udp@"]);
const answer = resolver.resolve4("planted.invalid");
console.log("name", await answer.then((at) => "could " + at, (error) => error.code));
""",
    bash="""
for name in localhost parley-planted.invalid; do attempt name getent hosts $name; done
attempt name getent ahosts localhost
""",
)
_RAW = Attack(
    python="""
import ctypes, socket
families = {name: getattr(socket, name) for name in dir(socket) if name.startswith("AF_")}
for name, family in {**families, "AF_XDP": 44, "AF_SMC": 43, "AF_ALG": 38}.items():
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        attempt(name, lambda: socket.socket(family, kind).fileno())
        if name != "AF_UNIX":
            attempt(name, lambda: socket.socketpair(family, kind))
attempt("interfaces", lambda: socket.if_nameindex())
attempt("ring", lambda: call("io_uring_setup", 4, ctypes.create_string_buffer(120)))
""",
    node="""
attempt("interfaces", () => {
  const interfaces = JSON.stringify(os.networkInterfaces());
  if (interfaces === "{}") throw new Error();
  return interfaces;
});
attempt("server", () => net.createServer().listen(0).address().port);
""",
    bash="""
attempt interfaces ip address
attempt ping ping -c 1 -W 1 127.0.0.1
attempt sockets ss -x
""",
)


class Target(NamedTuple):
    reached: list[str]
    report: Report


@pytest.fixture(scope="module")
async def target(runner: SandboxRunner) -> Target:
    """The listeners that attacks reached, and what the attacks printed."""
    attacks = {"connections": _SPEAKING, "pairs": _PAIRS, "names": _NAMES, "families": _RAW}
    with create_open_folder() as folder, ExitStack() as stack:
        listeners = Listeners(stack, folder)
        report = await runner.run_attacks(attacks, **listeners.values())
        return Target(listeners.find_reached(), report)


def test_no_listening_socket_is_reached(target: Target, subtests: pytest.Subtests) -> None:
    assert target.reached == []
    for language, output in target.report.of("connections"):
        with subtests.test(language=language):
            assert "reached" not in output


def test_pairs_of_sockets_serve_as_pipes(target: Target) -> None:
    """Event loops use socket pairs to wake up."""
    ((_, output),) = target.report.of("pairs")
    assert "received b'between us'" in output
    assert not re.search(r"^SOCK_DGRAM could", output, re.MULTILINE)


def test_no_host_name_is_resolved(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("names"):
        with subtests.test(language=language):
            assert "name could" not in output


def test_no_socket_of_any_family_is_opened(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("families"):
        with subtests.test(language=language):
            assert not re.search(
                r"^(AF_\w+|interfaces|ring|server|ping) could", output, re.MULTILINE
            )
            assert "127.0.0.1" not in output


def _list_networks(mark: str) -> set[str]:
    """Returns the network namespaces of a run's processes, those that start it included."""
    networks = set()
    for pid in find_marked_processes(mark):
        with suppress(OSError):
            networks.add(os.readlink(f"/proc/{pid}/ns/net"))  # noqa: PTH115  # of a process
    return networks


@pytest.mark.parametrize("runner", ["bubblewrap"], indirect=True)
async def test_a_run_of_bubblewrap_has_a_network_of_its_own(runner: SandboxRunner) -> None:
    """Beside the filter of calls, which alone would keep code from the network as well."""
    mark, own = new_mark(), _read_own_network()
    task = asyncio.create_task(runner.run("bash", "sleep 30; true", b"", 30, mark))
    assert await wait_until(lambda: _list_networks(mark) - {own})
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await wait_until_gone(mark)


def _read_own_network() -> str:
    return os.readlink("/proc/self/ns/net")  # noqa: PTH115  # as above
