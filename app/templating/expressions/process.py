"""One process that evaluates expressions, one request at a time."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, cast

import msgspec

_SCRIPT = Path(__file__).with_name("child.py")
_MIB = 1024 * 1024
_HEADER = 4
# The first byte of an answer after which the process has little memory left.
_LAST = 1
_MAX_ANSWER = _MIB + 16 * 1024
_START_SECONDS = 15.0
# A timer that is this late shows that the event loop was busy: the answer may be there, unread.
_LATENESS = 0.1
_EXIT_SECONDS = 5.0
# The process ends itself when its parent, which should have done so, is gone.
_OWN_DEADLINE_FACTOR = 3

# `time`: the evaluation took too long. `memory` and `crash`: it ended the process. `killed`: a
# signal from outside did. `start`: the process did not start.
Reason = Literal["time", "memory", "crash", "killed", "start", "closed"]
_OUT_OF_MEMORY = 86
_OUTSIDE_SIGNALS = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT}


class AnswerHandler(Protocol):
    def __call__(self, process: "EvaluationProcess", content: bytes, *, is_last: bool) -> None: ...


class EvaluationProcess(asyncio.SubprocessProtocol):
    """Calls `on_ready` once, with the limits that the machine does not have, and `on_answer` with
    each answer. After the last one the process should be replaced. Calls `on_end` once, when it
    takes no more requests.
    """

    def __init__(
        self,
        on_ready: Callable[["EvaluationProcess", list[str]], None],
        on_answer: AnswerHandler,
        on_end: Callable[["EvaluationProcess", Reason], None],
    ) -> None:
        self._on_ready = on_ready
        self._on_answer = on_answer
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport | None = None
        self._buffer = bytearray()
        self._deadline: asyncio.TimerHandle | None = None
        self._has_ended = False
        self._is_ready = False
        self._gone = self._loop.create_future()

    async def start(self, *, seconds: float, memory_mib: int) -> None:
        """Returns before the process is ready."""
        self._set_deadline(_START_SECONDS, "start")
        numbers = (memory_mib * _MIB, seconds * _OWN_DEADLINE_FACTOR, os.getpid())
        try:
            await self._loop.subprocess_exec(
                lambda: self,
                *(sys.executable, "-I", str(_SCRIPT)),
                *map(str, numbers),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._set_gone()
            self.end("start")

    @property
    def pid(self) -> int | None:
        return self._transport.get_pid() if self._transport else None

    def send(self, content: bytes, seconds: float) -> None:
        """Hands over a request. The process is killed when it does not answer in time."""
        self._set_deadline(seconds, "time")
        transport = self._transport.get_pipe_transport(0) if self._transport else None
        if transport is not None:
            stdin = cast("asyncio.WriteTransport", transport)
            stdin.write(len(content).to_bytes(_HEADER, "big") + content)

    def end(self, reason: Reason) -> None:
        """Kills the process, without waiting for its end."""
        if self._deadline:
            self._deadline.cancel()
        if self._transport and self._transport.get_returncode() is None:
            # By its own id; the transport has not reaped it yet.
            self._transport.kill()
        if not self._has_ended:
            self._has_ended = True
            self._on_end(self, reason)

    async def wait_gone(self) -> None:
        """Waits until the killed process is reaped."""
        await asyncio.wait([self._gone], timeout=_EXIT_SECONDS)

    def _set_deadline(self, seconds: float, reason: Reason) -> None:
        if self._deadline:
            self._deadline.cancel()
        due = self._loop.time() + seconds
        self._deadline = self._loop.call_at(due, self._check_deadline, due, reason)

    def _check_deadline(self, due: float, reason: Reason) -> None:
        if self._loop.time() - due > _LATENESS:
            self._set_deadline(_LATENESS, reason)
        else:
            self.end(reason)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        if self._has_ended:
            self._transport.kill()

    def pipe_data_received(self, _: int, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < _HEADER:
            return
        size = int.from_bytes(self._buffer[:_HEADER], "big")
        if not 0 < size <= _MAX_ANSWER:
            self.end("crash")
        elif len(self._buffer) >= _HEADER + size and not self._has_ended:
            mark, content = self._buffer[_HEADER], bytes(self._buffer[_HEADER + 1 : _HEADER + size])
            self._buffer.clear()
            if self._deadline:
                self._deadline.cancel()
            if self._is_ready:
                self._on_answer(self, content, is_last=mark == _LAST)
            else:
                self._is_ready = True
                self._on_ready(self, msgspec.json.decode(content, type=list[str]))

    def process_exited(self) -> None:
        # Otherwise the end of the pipe might be noticed only by the next write.
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if pipe is not None:
            pipe.close()
        # The last answer may still be in the other pipe: `connection_lost` follows it.
        self._loop.call_later(_EXIT_SECONDS, self.connection_lost, None)

    def connection_lost(self, _: Exception | None) -> None:
        self._set_gone()
        code = self._transport.get_returncode() if self._transport else None
        if self._transport:
            self._transport.close()
        if code == _OUT_OF_MEMORY:
            self.end("memory")
        elif code in _OUTSIDE_SIGNALS:
            self.end("killed")
        else:
            self.end("crash" if self._is_ready else "start")

    def _set_gone(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
