"""The headers that the gate reads, and the limits of what precedes the body of a request."""

from collections.abc import Iterable

from litestar.types import HTTPScope

from app.kit.errors import HeadersTooLarge, UriTooLong

# Servers and proxies commonly accept as much; none of our routes needs more.
_MAX_URI_BYTES = 8 * 1024
_MAX_HEADER_BYTES = 64 * 1024
_READ_HEADERS = {
    b"authorization",
    b"x-request-id",
    b"x-correlation-id",
    b"x-tenant-id",
    b"x-forwarded-for",
    b"origin",
}


def check_size(scope: HTTPScope) -> None:
    """Raises UriTooLong or HeadersTooLarge: what parses them may take time for each character."""
    if len(scope["raw_path"]) + len(scope["query_string"]) > _MAX_URI_BYTES:
        raise UriTooLong(f"The path and query are longer than {_MAX_URI_BYTES} bytes")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > _MAX_HEADER_BYTES:
        raise HeadersTooLarge(f"The headers are larger than {_MAX_HEADER_BYTES} bytes together")


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Returns the headers that the gate reads. Values of one name are joined by commas."""
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name in _READ_HEADERS:
            values.setdefault(name, []).append(value)
    return {name: b",".join(parts) for name, parts in values.items()}


def header_text(request_headers: dict[bytes, bytes], name: bytes) -> str | None:
    value = request_headers.get(name)
    return value.decode("latin-1") if value is not None else None
