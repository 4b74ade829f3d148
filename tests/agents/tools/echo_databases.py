"""Database servers that answer a login with a text of the test, or with the password."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from tests.agents.vault.servers import serve_tcp

_TLS_REQUEST, _CLEAR_PASSWORD = 80877103, 3


class EchoDatabase(msgspec.Struct):
    """`error` is the text of every error; `version` is what a MySQL server calls itself."""

    port: int = 0
    error: str = ""
    version: str = "8.0.0"
    code: str = "XX000"
    mysql_code: int = 1064
    passwords: list[str] = msgspec.field(default_factory=list)


@asynccontextmanager
async def serve_echo_postgres() -> AsyncIterator[EchoDatabase]:
    """Asks for the password in clear text, and answers with an error."""
    echo = EchoDatabase()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            startup = await reader.readexactly(length - 4)
            if struct.unpack("!I", startup[:4])[0] != _TLS_REQUEST:
                break
            writer.write(b"N")
        writer.write(b"R" + struct.pack("!II", 8, _CLEAR_PASSWORD))
        kind, length = struct.unpack("!cI", await reader.readexactly(5))
        assert kind == b"p"
        echo.passwords.append((await reader.readexactly(length - 4))[:-1].decode())
        fields = {b"S": "ERROR", b"V": "ERROR", b"C": echo.code, b"M": echo.error}
        fields |= {b"D": f"detail {echo.error[:2000]}", b"H": f"hint {echo.error[:2000]}"}
        content = b"".join(name + text.encode() + b"\0" for name, text in fields.items()) + b"\0"
        writer.write(b"E" + struct.pack("!I", len(content) + 4) + content)
        await writer.drain()

    async with serve_tcp(handle) as port:
        echo.port = port
        yield echo


@asynccontextmanager
async def serve_echo_mysql() -> AsyncIterator[EchoDatabase]:
    """Lets everybody in if `error` is empty, and tells its version; else answers with the error."""
    echo = EchoDatabase()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_packet(0, _build_greeting()))
        await _read_packet(reader)
        if echo.error:
            code = struct.pack("<H", echo.mysql_code)
            writer.write(_packet(2, b"\xff" + code + b"#HY000" + echo.error.encode()))
            await writer.drain()
            return
        writer.write(_packet(2, _OK))
        while True:
            query = await _read_packet(reader)
            if b"version()" in query:
                writer.write(b"".join(_build_rows(echo.version)))
            else:
                writer.write(_packet(1, _OK))
            await writer.drain()

    async with serve_tcp(handle) as port:
        echo.port = port
        yield echo


_OK = b"\0\0\0\x02\0\0\0"
_END = b"\xfe\0\0\x02\0"
# Protocol 4.1, secure connections and plugins for the login; no TLS.
_CAPABILITIES = 0x00088200 | 0x00000008 | 0x00000001


def _packet(number: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "little") + bytes([number]) + content


async def _read_packet(reader: asyncio.StreamReader) -> bytes:
    header = await reader.readexactly(4)
    return await reader.readexactly(int.from_bytes(header[:3], "little"))


def _build_greeting() -> bytes:
    low, high = _CAPABILITIES & 0xFFFF, _CAPABILITIES >> 16
    return (
        b"\x0a8.0.0\0"
        + struct.pack("<I", 1)
        + b"12345678\0"
        + struct.pack("<HBHHB", low, 45, 2, high, 21)
        + b"\0" * 10
        + b"123456789012\0"
        + b"mysql_native_password\0"
    )


def _build_rows(value: str) -> list[bytes]:
    names = [b"def", b"", b"", b"", b"version()", b""]
    column = b"".join(bytes([len(name)]) + name for name in names)
    column += b"\x0c" + struct.pack("<HIBHB", 45, 1024, 253, 0, 0) + b"\0\0"
    cell = value.encode()
    size = bytes([len(cell)]) if len(cell) < 251 else b"\xfd" + len(cell).to_bytes(3, "little")
    parts = [b"\x01", column, _END, size + cell, _END]
    return [_packet(number, part) for number, part in enumerate(parts, 1)]
