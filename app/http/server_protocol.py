"""The server's HTTP protocol, with limits on what a request has besides its body, on the time that
a client takes, and on the connections of an address.
"""

import asyncio
from http import HTTPStatus
from typing import Any, ClassVar, cast
from weakref import WeakKeyDictionary

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.http import request_cancellation, sse
from app.http.connection_guard import (
    ConnectionGuard,
    ConnectionLimits,
    Deadlines,
    GuardedConnection,
)
from app.http.errors import envelope
from app.kit.errors import (
    ApiError,
    HeadersTooLarge,
    MalformedRequest,
    PayloadTooLarge,
    RequestTimeout,
    UriTooLong,
)

MAX_URL_BYTES = 16 * 1024
# The request line and the headers together.
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256
# Sizes, extensions and trailers of a chunked body: some bytes, and some per byte of content.
# The smallest chunk has five bytes around its one.
MAX_FRAMING_BYTES = 64 * 1024
_FRAMING_PER_BYTE = 8
# Requests that wait for the answer to an earlier one of the same connection.
MAX_PIPELINED = 32
# The parser takes a larger read in pieces: a head that ends within one piece is within its limit.
_PIECE_BYTES = MAX_HEAD_BYTES
_LAST_CHUNK = b"0\r\n\r\n"


class BoundedHttpProtocol(HttpToolsProtocol):
    """Ends a connection whose request has a URL, a head or a framing that is too large, as soon as
    it is: the parser would keep all of it in memory.

    Bytes are counted per read, not per header, so that a usual request costs nothing.
    """

    deadlines: ClassVar = Deadlines()
    # The web process sets those of its settings.
    limits: ClassVar = ConnectionLimits()
    _guards: ClassVar[WeakKeyDictionary[ServerState, ConnectionGuard]] = WeakKeyDictionary()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._guard = self._find_guard()
        self._counted_by: str | None = None
        self._rejection: ApiError | None = None
        # Seconds that the server has waited in this part of a request, and for any byte.
        self._waited = 0.0
        self._silent = 0.0
        self._discarded = 0.0
        self._stalled = 0.0
        self._unsent_bytes = 0
        self._has_begun = False
        # Also between two requests.
        self._in_head = True
        # Whether the head began in an earlier piece, and the bytes of it there that are known.
        self._is_head_split = False
        self._head_bytes = 0
        self._body_bytes = 0
        self._framing_bytes = 0
        # Framing since the last content: trailers, which the parser keeps.
        self._trailer_bytes = 0
        self._message_ended = False
        self._ignores_data = False
        # Cycles before the last one whose responses were not complete when it began.
        self._earlier: list[RequestResponseCycle] = []

    def _find_guard(self) -> ConnectionGuard:
        guard = self._guards.get(self.server_state)
        if guard is None:
            connections = cast("set[GuardedConnection]", self.connections)
            guard = ConnectionGuard(connections, self.limits, self.deadlines.sweep)
            self._guards[self.server_state] = guard
        return guard

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._counted_by = self._guard.add(self.client)
        self._rejection = self._guard.find_problem(self._counted_by)
        if self._rejection is not None:
            self._ignores_data = True
            if self._guard.is_crowded(self._counted_by):
                self._reject()

    def data_received(self, data: bytes) -> None:
        self._silent = 0.0
        self._unset_keepalive_if_required()
        if len(data) <= _PIECE_BYTES:
            self._read(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), _PIECE_BYTES):
            self._read(view[start : start + _PIECE_BYTES])

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._guard.remove(self._counted_by)
        running = self._find_running()
        if running is not None:
            # With a pipelined request, it is not the cycle that uvicorn tells.
            running.disconnected = True
            running.message_event.set()
            if not running.response_started:
                request_cancellation.cancel_request(running.scope["state"])

    def shutdown(self) -> None:
        super().shutdown()
        running = self._find_running()
        if running is not None and running.chunked_encoding and _is_endless(running):
            self.transport.write(_LAST_CHUNK)
            running.disconnected = True
            running.message_event.set()
            self.transport.close()

    def _read(self, piece: bytes | memoryview) -> None:
        if self._ignores_data or self.transport.is_closing():
            self._reject()
            return
        self._message_ended = False
        was_in_head, body_before = self._in_head, self._body_bytes
        try:
            self.parser.feed_data(piece)
            if self._in_head:
                self._count_head(len(piece))
            elif not was_in_head and not self._message_ended:
                self._count_framing(len(piece), self._body_bytes - body_before)
        except httptools.HttpParserUpgrade:
            # No other protocol is spoken: what follows cannot be read as a request.
            self._close_after_response()
        except httptools.HttpParserError as error:
            reason = error.__context__
            if not isinstance(reason, ApiError):
                reason = MalformedRequest("This is not a valid HTTP request")
            self._refuse(reason)
        except ApiError as error:
            self._refuse(error)

    def _count_head(self, piece_bytes: int) -> None:
        self._is_head_split = self._has_begun
        # Where the next head begins within the piece is not known; it is counted at its end.
        self._head_bytes = 0 if self._message_ended else self._head_bytes + piece_bytes
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _head_too_large()

    def _count_framing(self, piece_bytes: int, content_bytes: int) -> None:
        """Raises PayloadTooLarge: nothing else counts what a body has besides its content."""
        framing = piece_bytes - content_bytes
        self._framing_bytes += framing
        self._trailer_bytes = 0 if content_bytes else self._trailer_bytes + framing
        limit = MAX_FRAMING_BYTES + _FRAMING_PER_BYTE * self._body_bytes
        if self._framing_bytes > limit or self._trailer_bytes > MAX_FRAMING_BYTES:
            raise PayloadTooLarge("The chunks of the body have too many bytes besides its content")

    # What the parser finds

    def on_url(self, url: bytes) -> None:
        # As the overridden method does.
        self.url += url
        if not self._has_begun:
            self._has_begun = True
            self._waited = 0.0
        if len(self.url) > MAX_URL_BYTES:
            raise UriTooLong(f"The URL is longer than {MAX_URL_BYTES} bytes")

    def on_headers_complete(self) -> None:
        if self._is_head_split and _measure_head(self.url, self.headers) > MAX_HEAD_BYTES:
            raise _head_too_large()
        if len(self.headers) > MAX_HEADERS:
            raise HeadersTooLarge(f"There are more than {MAX_HEADERS} headers")
        previous = self.cycle
        if previous is not None and not previous.response_complete:
            self._pipeline(previous)
        super().on_headers_complete()
        self._in_head = self._is_head_split = False
        self._waited = self._discarded = 0.0
        self._body_bytes = self._framing_bytes = self._trailer_bytes = 0
        # Trailers are no headers: the application must not see them among those it has checked.
        self.headers = []

    def _pipeline(self, previous: RequestResponseCycle) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise MalformedRequest(f"More than {MAX_PIPELINED} requests wait on this connection")
        self._earlier = [cycle for cycle in self._earlier if not cycle.response_complete]
        self._earlier.append(previous)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = self._message_ended = True
        self._has_begun = False
        self._waited = 0.0
        self._head_bytes = 0

    # Deadlines

    def resume_writing(self) -> None:
        super().resume_writing()
        # The buffer may be full again before the next sweep.
        self._unsent_bytes = 0

    def check_deadlines(self, seconds: float) -> None:
        """Called by the guard's sweep."""
        unsent = self.transport.get_write_buffer_size()
        is_stalled = 0 < self._unsent_bytes <= unsent
        self._stalled = self._stalled + seconds if is_stalled else 0.0
        self._unsent_bytes = unsent
        if self._stalled >= self.deadlines.unread_response:
            self.transport.abort()
        elif self._rejection is not None:
            self._reject()
        elif not self.transport.is_closing() and not self._has_paused_client():
            self._waited += seconds
            self._silent += seconds
            if self._in_head:
                self._check_head()
            elif self.cycle.response_complete:
                self._discarded += seconds
                if self._discarded >= self.deadlines.discarded_body:
                    self.transport.close()
            else:
                self._check_body()

    def _has_paused_client(self) -> bool:
        """True when the server does not read, or has not asked for the body yet."""
        is_asked = self._in_head or not self.cycle.waiting_for_100_continue
        return self.flow.read_paused or not is_asked

    def _check_head(self) -> None:
        if self._has_begun:
            if self._waited >= self.deadlines.head:
                self._refuse(
                    RequestTimeout(
                        f"The headers did not arrive within {self.deadlines.head:g} seconds"
                    )
                )
        elif self._find_running() is not None:
            self._waited = 0.0
        elif self._waited >= self.deadlines.idle:
            self.transport.close()

    def _check_body(self) -> None:
        deadlines = self.deadlines
        rate = deadlines.body_bytes_per_second
        if self._silent >= deadlines.body_pause:
            self._refuse(
                RequestTimeout(f"The body did not continue within {deadlines.body_pause:g} seconds")
            )
        elif self._body_bytes < rate * (self._waited - deadlines.body_grace):
            self._refuse(RequestTimeout(f"The body has less than {rate} bytes per second"))
        elif self._waited >= deadlines.upload_grace and self._is_upload():
            self._check_upload()

    def _check_upload(self) -> None:
        rate = self.deadlines.upload_bytes_per_second
        if self._body_bytes < rate * self._waited:
            self._refuse(
                RequestTimeout(
                    f"The upload is too slow: it must have at least {rate} bytes per second. "
                    "Try again with a faster connection"
                )
            )

    def _is_upload(self) -> bool:
        """True for a multipart body: no route takes files in any other."""
        return any(
            name == b"content-type" and value.lower().startswith(b"multipart/")
            for name, value in self.scope["headers"]
        )

    # Ending the connection

    def _reject(self) -> None:
        """Answers a connection that is one too many; not before its request, where that is
        possible: closing with bytes that were not read would reset it.
        """
        if self._rejection is not None and not self.transport.is_closing():
            self._write_error(self._rejection)
            self.transport.close()

    def _refuse(self, error: ApiError) -> None:
        """Answers with the error and closes. Responses to earlier requests are sent first."""
        running = self._find_running()
        if not self._in_head:
            if running is not None and running is self.cycle and not running.response_started:
                self._write_error(error)
                running.disconnected = True
                running.message_event.set()
        elif running is not None:
            self._close_after_response()
            return
        else:
            self._write_error(error)
        self._ignores_data = True
        self.transport.close()

    def _find_running(self) -> RequestResponseCycle | None:
        """Returns the cycle whose response is made; `cycle` is the last one of the connection."""
        cycles = [*self._earlier, self.cycle] if self.cycle is not None else []
        return next((cycle for cycle in cycles if not cycle.response_complete), None)

    def _close_after_response(self) -> None:
        self._ignores_data = True
        self.flow.pause_reading()
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    def _write_error(self, error: ApiError) -> None:
        body = envelope(error)
        lines = [
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "x-content-type-options: nosniff",
            "connection: close",
            *(f"{name.lower()}: {value}" for name, value in (error.headers or {}).items()),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)


def _is_endless(cycle: RequestResponseCycle) -> bool:
    return cycle.response_started and sse.ENDLESS in cycle.scope["state"]


def _measure_head(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    line = len("GET  HTTP/1.1\r\n") + len(url)
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


def _head_too_large() -> HeadersTooLarge:
    return HeadersTooLarge(f"The headers are larger than {MAX_HEAD_BYTES} bytes together")
