"""The server's HTTP protocol, with a limit on what precedes the body of a request."""

from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.http.errors import envelope
from app.kit.errors import HeadersTooLarge

# Far above what the gate accepts, which answers with all headers of a response.
MAX_HEAD_BYTES = 256 * 1024


class BoundedHttpProtocol(HttpToolsProtocol):
    """Ends a connection whose request line and headers do not end: the parser would keep them in
    memory, and copy them with each part that arrives.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head = True
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True
        self._head_bytes = 0

    def _refuse(self) -> None:
        """Answers, unless the answer to an earlier request is being sent, and closes."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            error = HeadersTooLarge(f"The headers are larger than {MAX_HEAD_BYTES} bytes together")
            body = envelope(error)
            status = f"{error.status} {HTTPStatus(error.status).phrase}"
            head = (
                f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
