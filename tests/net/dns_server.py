"""A nameserver on loopback with a table of names; some of them are never answered."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

_HEADER = struct.Struct("!HHHHHH")
_A, _AAAA = 1, 28
_NO_ERROR, _SERVER_FAILED, _NO_SUCH_NAME = 0, 2, 3


class DnsServer(asyncio.DatagramProtocol):
    """Answers from `addresses`. Names under `slow.test` wait until `release`, those under
    `broken.test` fail, and all others do not exist. Records the names that it was asked for.
    """

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.names: list[str] = []
        self.address = ""
        self._transport: Any = None
        self._waiting: list[tuple[bytes, Any]] = []
        self._is_released = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        host, port = transport.get_extra_info("sockname")
        self.address = f"{host}:{port}"

    def datagram_received(self, data: bytes, addr: Any) -> None:
        name = _read_name(data)
        self.names.append(name)
        if name.endswith("slow.test") and not self._is_released:
            self._waiting.append((data, addr))
            return
        self._transport.sendto(self._answer(data, name), addr)

    def release(self) -> None:
        """Answers the slow names, as names that do not exist."""
        self._is_released = True
        for data, addr in self._waiting:
            self._transport.sendto(self._answer(data, _read_name(data)), addr)
        self._waiting.clear()

    def close(self) -> None:
        self._transport.close()

    def _answer(self, query: bytes, name: str) -> bytes:
        end = query.index(b"\0", _HEADER.size) + 5
        (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
        records = [
            _build_record(kind, address)
            for address in self.addresses.get(name, [])
            if kind == (_AAAA if ":" in address else _A)
        ]
        code = _NO_ERROR if name in self.addresses else _NO_SUCH_NAME
        if name.endswith("broken.test"):
            code = _SERVER_FAILED
        (query_id,) = struct.unpack("!H", query[:2])
        header = _HEADER.pack(query_id, 0x8180 | code, 1, len(records), 0, 0)
        return header + query[_HEADER.size : end] + b"".join(records)


def _read_name(query: bytes) -> str:
    labels, position = [], _HEADER.size
    while length := query[position]:
        labels.append(query[position + 1 : position + 1 + length].decode())
        position += 1 + length
    return ".".join(labels).lower()


def _build_record(kind: int, address: str) -> bytes:
    """A record that is not to be cached, with a pointer to the name of the question."""
    packed = socket.inet_pton(socket.AF_INET6 if kind == _AAAA else socket.AF_INET, address)
    return struct.pack("!HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed


@asynccontextmanager
async def run_dns_server() -> AsyncIterator[DnsServer]:
    loop = asyncio.get_running_loop()
    _, server = await loop.create_datagram_endpoint(DnsServer, ("127.0.0.1", 0))
    try:
        yield server
    finally:
        server.close()
