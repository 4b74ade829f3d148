"""A minimal model server in OpenAI's wire format, without delay except for the model `slow`."""

import asyncio
import json
import os

DELTAS = 20
_TEXT = "word "


def _body() -> bytes:
    message = {"role": "assistant", "content": _TEXT * DELTAS}
    usage = {"prompt_tokens": 30, "completion_tokens": DELTAS, "total_tokens": 30 + DELTAS}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "x", "choices": [choice], "usage": usage}).encode()


def _chunks() -> list[bytes]:
    def event(data: object) -> bytes:
        return b"data: " + json.dumps(data).encode() + b"\n\n"

    usage = {"prompt_tokens": 30, "completion_tokens": DELTAS, "total_tokens": 30 + DELTAS}
    delta = {"id": "x", "choices": [{"index": 0, "delta": {"content": _TEXT}}]}
    last = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return [
        *[event(delta)] * DELTAS,
        event(last),
        event({"id": "x", "choices": [], "usage": usage}),
        b"data: [DONE]\n\n",
    ]


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


_WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_body()),
    _body(),
)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_STREAM = _HEAD + b"".join(map(_chunked, _chunks())) + b"0\r\n\r\n"


class _Model(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        marker = head.lower().find(b"content-length:")
        if not separator or len(body) < int(head[marker + 15 :].split(b"\r\n", 1)[0]):
            return
        self._buffer = b""
        if self._transport is None:
            return
        if b'"slow"' in body:
            loop = asyncio.get_running_loop()
            self._sending = loop.create_task(self._send_slowly(self._transport))
        else:
            self._transport.write(_STREAM if b'"stream":true' in body else _WHOLE)

    async def _send_slowly(self, transport: asyncio.Transport) -> None:
        """Sends a stream that takes a second, for measuring many streams at once."""
        transport.write(_HEAD)
        for chunk in _chunks():
            transport.write(_chunked(chunk))
            await asyncio.sleep(0.05)
        transport.write(b"0\r\n\r\n")


async def _main() -> None:
    port = int(os.environ["STUB_PORT"])
    server = await asyncio.get_running_loop().create_server(_Model, "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    import uvloop  # noqa: PLC0415

    uvloop.run(_main())
