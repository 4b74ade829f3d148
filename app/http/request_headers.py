"""The headers that the gate reads. `server_protocol` limits their size."""

from collections.abc import Iterable

_READ_HEADERS = {
    b"authorization",
    b"x-request-id",
    b"x-correlation-id",
    b"x-tenant-id",
    b"x-forwarded-for",
    b"origin",
}


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
