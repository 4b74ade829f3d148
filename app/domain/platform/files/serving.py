"""The answer to a request for a file's content: status, headers and bytes."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from app.kit import content_types, filenames

from .errors import RangeNotSatisfiable
from .ranges import ByteRange, Unsatisfiable, matches_any, may_use_range, parse_range
from .records import FileRecord

_OK, _PARTIAL, _NOT_MODIFIED = 200, 206, 304
# The content never changes, but only its tenant may have it.
_CACHE_CONTROL: Final = "private, no-cache"


class Conditions(msgspec.Struct, frozen=True):
    """The headers of a request that decide what of the content is sent."""

    range: str | None = None
    if_range: str | None = None
    if_none_match: str | None = None


class Plan(msgspec.Struct, frozen=True):
    """What is to be sent; nothing without a range."""

    status: int
    headers: dict[str, str]
    range: ByteRange | None = None


class Content(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    parts: AsyncIterator[bytes]


def plan_answer(file: FileRecord, conditions: Conditions) -> Plan:
    """Raises RangeNotSatisfiable."""
    size, entity_tag = file.size_bytes, f'"{file.sha256}"'
    headers = {
        "accept-ranges": "bytes",
        "cache-control": _CACHE_CONTROL,
        "content-security-policy": "sandbox",
        "etag": entity_tag,
    }
    if conditions.if_none_match and matches_any(conditions.if_none_match, entity_tag):
        return Plan(_NOT_MODIFIED, headers)
    headers["content-disposition"] = filenames.as_attachment(file.filename)
    headers["content-type"] = content_types.served_type(file.mime_type)
    part = None
    if conditions.range and may_use_range(conditions.if_range, entity_tag):
        part = _find_range(conditions.range, size)
    if part is None:
        headers["content-length"] = str(size)
        return Plan(_OK, headers, ByteRange(0, size) if size else None)
    headers["content-length"] = str(part.end - part.start)
    headers["content-range"] = f"bytes {part.start}-{part.end - 1}/{size}"
    return Plan(_PARTIAL, headers, part)


def _find_range(header: str, size: int) -> ByteRange | None:
    try:
        return parse_range(header, size)
    except Unsatisfiable:
        raise RangeNotSatisfiable(
            f"The range starts beyond the end of the file, which has {size} bytes.",
            details={"size_bytes": size},
            headers={"Content-Range": f"bytes */{size}", "Accept-Ranges": "bytes"},
        ) from None
