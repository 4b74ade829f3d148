"""Parses multipart bodies: files are spooled or streamed, texts are short and in UTF-8.

A client may name any charset for a text, and some of them decode in quadratic time.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from typing import Any, Final

import msgspec
from litestar import Request
from litestar.datastructures import UploadFile
from litestar.enums import RequestEncodingType
from litestar.exceptions import ClientException
from multipart import (  # type: ignore[import-untyped]
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
)

from app.kit.errors import Invalid, RequestTimeout

MAX_TEXT_BYTES: Final = 64 * 1024
# How long the next chunk of a streamed body may take.
MAX_WAIT_SECONDS: Final = 60.0
_MAX_PARTS = 1000

_Fields = defaultdict[str, list[Any]]


def find_boundary(request: Request[Any, Any, Any]) -> bytes | None:
    """Returns the boundary of a multipart body; None for any other body."""
    media_type, parameters = request.content_type
    boundary = parameters.get("boundary")
    is_multipart = media_type == RequestEncodingType.MULTI_PART
    return boundary.encode() if is_multipart and boundary is not None else None


async def parse_form(
    stream: AsyncIterator[bytes], boundary: bytes, digest: "BodyDigest | None" = None
) -> dict[str, Any]:
    """Returns files and texts by name; a list where a name stands several times."""
    fields: _Fields = defaultdict(list)
    try:
        await _read_parts(stream, boundary, fields, digest)
        for name, values in fields.items():
            fields[name] = [_decode(name, value) for value in values]
    except BaseException as error:
        for value in (value for values in fields.values() for value in values):
            if isinstance(value, UploadFile):
                await value.close()
        if isinstance(error, MultipartError):
            raise ClientException("Invalid multipart/form-data") from error
        raise
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


async def _read_parts(
    stream: AsyncIterator[bytes], boundary: bytes, fields: _Fields, digest: "BodyDigest | None"
) -> None:
    """Adds an UploadFile or a bytearray for each part."""
    name = ""
    value: Any = None
    with PushMultipartParser(boundary, max_segment_count=_MAX_PARTS) as parser:
        async for chunk in stream:
            for event in parser.parse(chunk):
                if digest is not None:
                    digest.add(event)
                if isinstance(event, MultipartSegment):
                    name, value = event.name or "", _start_value(event)
                    fields[name].append(value)
                elif isinstance(value, UploadFile):
                    await (value.write(event) if event else value.seek(0))
                elif event:
                    value += event
                    if len(value) > MAX_TEXT_BYTES:
                        raise Invalid.field(name, f"is longer than {MAX_TEXT_BYTES // 1024} kB")
            if parser.closed:
                return
        parser.parse(b"")


# Streams


class BodyDigest:
    """The fingerprint of a multipart body that is read part by part. It does not depend on the
    boundary, which a client chooses anew each time.
    """

    def __init__(self) -> None:
        self._body = hashlib.sha256()
        self._part = hashlib.sha256()

    def add(self, event: MultipartSegment | bytes | None) -> None:
        if isinstance(event, MultipartSegment):
            headers = msgspec.json.encode(event.headerlist)
            self._body.update(hashlib.sha256(headers).digest())
        elif event:
            self._part.update(event)
        else:
            self._body.update(self._part.digest())
            self._part = hashlib.sha256()

    def hexdigest(self) -> str:
        return self._body.hexdigest()


class FileStream:
    """The one file of a multipart body, read while it arrives. To be iterated to its end, so that
    the whole body is checked. `texts` has those of the named texts that have arrived; other fields
    are skipped.
    """

    def __init__(
        self, field: str, events: AsyncIterator[Any], text_names: Collection[str] = ()
    ) -> None:
        self.filename = ""
        self.texts: dict[str, str] = {}
        self._field = field
        self._text_names = text_names
        self._events = events
        self._text: tuple[str, bytearray] | None = None
        self._text_bytes = 0

    async def open(self) -> None:
        """Reads the body up to the content of the file."""
        async for event in self._events:
            if isinstance(event, MultipartSegment) and event.name == self._field:
                if not event.filename:
                    break
                self.filename = event.filename
                return
            self._check_text(event)
        else:
            raise Invalid.field(self._field, "is required")
        raise Invalid.field(self._field, "must be one file")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_open = True
        async for event in self._events:
            if is_open:
                is_open = event is not None
                if event:
                    yield event
            elif isinstance(event, MultipartSegment) and event.name == self._field:
                raise Invalid.field(self._field, "must be one file")
            else:
                self._check_text(event)

    def _check_text(self, event: MultipartSegment | bytes | None) -> None:
        """Refuses long texts and those that are not UTF-8. Files under other names are skipped."""
        if isinstance(event, MultipartSegment):
            self._text = None if event.filename else (event.name or "", bytearray())
        elif self._text is not None:
            name, text = self._text
            if not event:
                decoded = _decode(name, text)
                if name in self._text_names:
                    self.texts[name] = decoded
                return
            self._text_bytes += len(event)
            if self._text_bytes > MAX_TEXT_BYTES:
                raise Invalid.field(name, f"is longer than {MAX_TEXT_BYTES // 1024} kB")
            text += event


async def open_file(
    request: Request[Any, Any, Any], field: str, text_names: Collection[str] = ()
) -> FileStream:
    """Returns the file of a body whose content is not read yet. Raises Invalid without one."""
    events = _iterate_events(request, request.scope["state"].get("body_digest"))
    file = FileStream(field, events, text_names)
    await file.open()
    return file


async def read_fingerprint(request: Request[Any, Any, Any]) -> str:
    """Reads a body to its end without keeping it."""
    digest = BodyDigest()
    async for _ in _iterate_events(request, digest):
        pass
    return digest.hexdigest()


async def _iterate_events(
    request: Request[Any, Any, Any], digest: BodyDigest | None
) -> AsyncIterator[MultipartSegment | bytes | None]:
    """Yields the head, the content and the end of each part."""
    boundary = find_boundary(request)
    if boundary is None:
        raise ClientException("Send multipart/form-data with a boundary")
    try:
        with PushMultipartParser(boundary, max_segment_count=_MAX_PARTS) as parser:
            # The last chunk is empty, and closes the parser.
            async for chunk in _limit_waits(request.stream()):
                for event in parser.parse(chunk):
                    if digest is not None:
                        digest.add(event)
                    yield event
    except MultipartError as error:
        raise ClientException("Invalid multipart/form-data") from error


async def _limit_waits(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Raises RequestTimeout when the next chunk does not arrive: an upload has some megabytes in
    memory while it waits.
    """
    while True:
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise RequestTimeout(
                f"The body did not continue within {MAX_WAIT_SECONDS:g} seconds",
                headers={"Connection": "close"},
            ) from None
        yield chunk


def _start_value(segment: MultipartSegment) -> Any:
    if not segment.filename:
        return bytearray()
    return UploadFile(
        content_type=segment.content_type or "text/plain",
        filename=segment.filename,
        headers=dict(segment.headerlist),
    )


def _decode(name: str, value: Any) -> Any:
    if isinstance(value, UploadFile):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Invalid.field(name, "must be text in UTF-8") from None
