"""The server's HTTP protocol, with limits on what a request has besides its body."""

from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.http.errors import envelope
from app.kit.errors import ApiError, HeadersTooLarge, MalformedRequest, PayloadTooLarge, UriTooLong

MAX_URL_BYTES = 16 * 1024
# The request line and the headers together.
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256
# Sizes, extensions and trailers of a chunked body: so many bytes, and so many per byte of content.
# The smallest chunk has five bytes around its one.
MAX_FRAMING_BYTES = 64 * 1024
_FRAMING_PER_BYTE = 8
# Requests that wait for the answer to an earlier one of the same connection.
MAX_PIPELINED = 32
# The parser takes a larger read in pieces: a head that ends within one piece is within its limit.
_PIECE_BYTES = MAX_HEAD_BYTES


class BoundedHttpProtocol(HttpToolsProtocol):
    """Ends a connection whose request has a URL, a head or a framing that is too large, as soon as
    it is: the parser would keep all of it in memory.

    Bytes are counted per read, not per header, so that a usual request costs nothing.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
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
        # Of the cycles of this connection, the one whose response is made; `cycle` is the last.
        self._running: RequestResponseCycle | None = None

    # The connection

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if len(data) <= _PIECE_BYTES:
            self._read(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), _PIECE_BYTES):
            self._read(view[start : start + _PIECE_BYTES])

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        running = self._running
        if running is not None and not running.response_complete:
            # With a pipelined request, it is not the cycle that uvicorn tells.
            running.disconnected = True
            running.message_event.set()

    def _read(self, piece: bytes | memoryview) -> None:
        if self._ignores_data or self.transport.is_closing():
            return
        try:
            self._feed(piece)
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

    def _feed(self, piece: bytes | memoryview) -> None:
        self._message_ended = False
        was_in_head, body_before = self._in_head, self._body_bytes
        self.parser.feed_data(piece)
        if self._in_head:
            self._is_head_split = True
            # Where the next head begins within the piece is not known; it is counted at its end.
            self._head_bytes = 0 if self._message_ended else self._head_bytes + len(piece)
            if self._head_bytes > MAX_HEAD_BYTES:
                raise _head_too_large()
        elif not was_in_head and not self._message_ended:
            self._count_framing(len(piece), self._body_bytes - body_before)

    def _count_framing(self, piece_bytes: int, content_bytes: int) -> None:
        """Raises PayloadTooLarge: nothing else counts what a body has besides its content."""
        framing = piece_bytes - content_bytes
        self._framing_bytes += framing
        self._trailer_bytes = 0 if content_bytes else self._trailer_bytes + framing
        limit = MAX_FRAMING_BYTES + _FRAMING_PER_BYTE * self._body_bytes
        if self._framing_bytes > limit or self._trailer_bytes > MAX_FRAMING_BYTES:
            raise PayloadTooLarge("The chunks of the body have too many bytes besides its content")

    # What the parser finds

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_head_split = False

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL_BYTES:
            raise UriTooLong(f"The URL is longer than {MAX_URL_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        # As the overridden method does, which a call for each header would make too slow.
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers = self.headers
        headers.append((name, value))
        if len(headers) > MAX_HEADERS:
            raise HeadersTooLarge(f"There are more than {MAX_HEADERS} headers")

    def on_headers_complete(self) -> None:
        if self._is_head_split and _count_head(self.url, self.headers) > MAX_HEAD_BYTES:
            raise _head_too_large()
        if len(self.pipeline) >= MAX_PIPELINED:
            raise MalformedRequest(f"More than {MAX_PIPELINED} requests wait on this connection")
        super().on_headers_complete()
        self._in_head = False
        self._body_bytes = self._framing_bytes = self._trailer_bytes = 0
        # Trailers are no headers: the application must not see them among those it has checked.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = self._message_ended = True
        self._head_bytes = 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    # Ending the connection

    def _refuse(self, error: ApiError) -> None:
        """Answers with the error and closes. Responses to earlier requests are sent first."""
        running = self._running
        if not self._in_head:
            if running is not None and running is self.cycle and not running.response_started:
                self._write_error(error)
                running.disconnected = True
                running.message_event.set()
        elif running is not None and not running.response_complete:
            self._close_after_response()
            return
        else:
            self._write_error(error)
        self._ignores_data = True
        self.transport.close()

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


def _count_head(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    line = len("GET  HTTP/1.1\r\n") + len(url)
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


def _head_too_large() -> HeadersTooLarge:
    return HeadersTooLarge(f"The headers are larger than {MAX_HEAD_BYTES} bytes together")
