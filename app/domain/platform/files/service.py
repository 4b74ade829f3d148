"""Stored files: the one way by which areas store, count and delete the files of a tenant."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Protocol, TypeVar

import msgspec

from app.domain.platform.events import api as events
from app.domain.platform.storage import api as storage
from app.jobs import background
from app.kit import filenames, paging
from app.kit.concurrency import ConcurrencyLimit
from app.kit.content_types import ContentDetector
from app.kit.errors import FileTooLarge
from app.kit.files import FileNotStored, as_stream
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.views import Data, build_view
from app.security.errors import TenantNotFound
from app.security.principal import Principal
from app.services import Services
from db.fast import tenant_of
from db.session import ALL_TENANTS, Tx

from . import queries, serving
from .errors import FileNotFound
from .events import FileCreated, FileDeleted
from .ranges import ByteRange
from .records import FileRecord, StoredUpload
from .schemas import FileView, Purpose
from .serving import Conditions, Content

_MAX_UPLOADS = 20


FOLDER: Final = "files/"
_MEGABYTE = 1024 * 1024
# What a body may have besides its file.
_OTHER_BODY_BYTES = 128 * 1024
# Those that the API shows; events tell of them alone.
_LISTED_PURPOSES = {"upload", "form"}
_READ_SUBMISSIONS = "submissions:read"


T = TypeVar("T")


class StreamedFile(Protocol):
    """A file that arrives. Its name is not trusted."""

    @property
    def filename(self) -> str: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Arrival(msgspec.Struct, frozen=True):
    """A file that is about to arrive. `body_bytes` is the length of the whole body, if the client
    names one. Those with the same `limited_as` count together: only some arrive at a time.
    """

    tenant_id: str
    purpose: Purpose
    body_bytes: int | None
    max_bytes: int
    limited_as: str
    owner_id: str | None = None

    @property
    def min_file_bytes(self) -> int:
        """The least that the file has, by the length of the body."""
        return max(0, (self.body_bytes or 0) - _OTHER_BODY_BYTES)


# Storing


async def upload(
    services: Services,
    principal: Principal,
    body_bytes: int | None,
    open_upload: Callable[[], Awaitable[StreamedFile]],
    store_answer: Callable[[Tx, Data[FileView]], Awaitable[None]],
) -> Data[FileView]:
    """Stores a file of a user. No transaction is open while it arrives. `store_answer` runs in the
    transaction that records the file.
    """
    tenant_id, max_bytes = principal.home, services.settings.max_file_mb * _MEGABYTE

    async def save(tx: Tx, stored: StoredUpload) -> Data[FileView]:
        answer = Data(await record(tx, tenant_id, stored, created_by=principal.user_id))
        await store_answer(tx, answer)
        return answer

    return await receive(
        services,
        Arrival(tenant_id, "upload", body_bytes, max_bytes, tenant_id),
        open_upload,
        save,
    )


async def receive(
    services: Services,
    arrival: Arrival,
    open_upload: Callable[[], Awaitable[StreamedFile]],
    save: Callable[[Tx, StoredUpload], Awaitable[T]],
) -> T:
    """Stores a file while it arrives, then calls `save` in one transaction, which records it or
    refuses it by an error.
    """
    tenant_id = arrival.tenant_id
    file_bytes = arrival.min_file_bytes
    if file_bytes <= arrival.max_bytes:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            await storage.check_file(tx, tenant_id, file_bytes)
    async with services.get(UploadLimit).hold(arrival.limited_as):
        source = await open_upload()
        stored = await store(
            services,
            tenant_id,
            source,
            filename=source.filename,
            purpose=arrival.purpose,
            max_bytes=arrival.max_bytes,
            owner_id=arrival.owner_id,
        )
    is_recorded = False
    try:
        async with services.db.tx(tenant_id) as tx:
            answer = await save(tx, stored)
            is_recorded = True
    except BaseException:
        # A commit that fails may have succeeded, although its reply was lost.
        if not is_recorded:
            await discard(services, [stored.key])
        raise
    return answer


async def store(
    services: Services,
    tenant_id: str,
    stream: AsyncIterable[bytes],
    *,
    filename: str,
    purpose: Purpose,
    max_bytes: int,
    key: str | None = None,
    owner_id: str | None = None,
) -> StoredUpload:
    """Stores a file durably, without a row: `record` adds it in the caller's transaction. Without
    a key it gets one in the folder of its tenant. Raises FileTooLarge.
    """
    file_id, detector = new_id("fil"), ContentDetector()
    key = key or f"{FOLDER}{tenant_id}/{file_id}"
    try:
        stored = await services.files.put_stream(
            key, _enforce_max_bytes(stream, max_bytes), detector.feed
        )
        mime_type = await asyncio.to_thread(detector.detect)
    except BaseException:
        await discard(services, [key])
        raise
    return StoredUpload(
        id=file_id,
        key=key,
        purpose=purpose,
        owner_id=owner_id,
        filename=filenames.clean(filename) or "file",
        size_bytes=stored.size_bytes,
        mime_type=mime_type,
        sha256=stored.sha256,
    )


async def _enforce_max_bytes(stream: AsyncIterable[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in stream:
        size += len(chunk)
        if size > max_bytes:
            raise build_too_large(max_bytes)
        yield chunk


def build_too_large(max_bytes: int) -> FileTooLarge:
    max_mb = max_bytes / _MEGABYTE
    details = {"max_size_mb": int(max_mb) if max_mb.is_integer() else max_mb}
    return FileTooLarge(f"The file is larger than {max_mb:g} MB", details=details)


async def discard(services: Services, keys: Iterable[str]) -> None:
    """Deletes stored files that are not recorded."""
    for key in keys:
        await background.run_to_end(services.files.delete(key))


async def record(
    tx: Tx, tenant_id: str, stored: StoredUpload, *, created_by: str | None
) -> FileView:
    """Adds the row of a stored file and counts it. Raises QuotaExceeded."""
    limit_bytes = await storage.lock_limit(tx, tenant_id)
    if limit_bytes is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    view = await queries.insert(
        tx,
        tenant_id,
        stored.size_bytes,
        limit_bytes,
        stored.id,
        stored.key,
        stored.purpose,
        stored.owner_id,
        stored.filename,
        stored.mime_type,
        stored.sha256,
        created_by,
    )
    if view is None:
        raise await storage.explain_full(tx, tenant_id)
    if stored.purpose in _LISTED_PURPOSES:
        created = FileCreated(view.id, view.filename, view.mime_type, view.size_bytes, view.purpose)
        await events.emit(tx, created, tenant_id=tenant_id, event_id=_event_id_of(view.id))
    return view


def _event_id_of(file_id: str) -> str:
    """Returns the id of the event that has the name of the file."""
    return f"evt_{file_id[4:]}"


# Reading


async def list_page(
    tx: Tx,
    principal: Principal,
    page: Page,
    *,
    search: str | None,
    mime_type: str | None,
    purpose: str | None,
    sort: str | None,
) -> Paged[FileView]:
    if not principal.may(_READ_SUBMISSIONS):
        if purpose == "form":
            raise principal.refusal(_READ_SUBMISSIONS)
        purpose = "upload"
    views, total = await queries.list_page(
        tx, page, search=search, mime_type=mime_type, purpose=purpose, sort=sort
    )
    return paging.paged(views, total, page)


async def find(tx: Tx, tenant_id: str | None, file_id: str) -> FileRecord:
    """Returns an uploaded file of this tenant, or of any with None. Raises FileNotFound for files
    of other areas too.
    """
    row = await queries.find(tx, tenant_id, file_id)
    if row is None:
        raise _not_found(file_id)
    return FileRecord(**{name: row[name] for name in FileRecord.__struct_fields__})


async def _find_visible(tx: Tx, principal: Principal, file_id: str) -> FileRecord:
    """A file of a form is found by callers who may read submissions."""
    file = await find(tx, tenant_of(tx), file_id)
    if file.purpose == "form" and not principal.may(_READ_SUBMISSIONS):
        raise _not_found(file_id)
    return file


async def get(tx: Tx, principal: Principal, file_id: str) -> FileView:
    return build_view(FileView, await _find_visible(tx, principal, file_id))


async def describe_content(
    services: Services, principal: Principal, file_id: str, conditions: Conditions
) -> serving.Plan:
    """Returns what a request for the content is answered with."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        file = await _find_visible(tx, principal, file_id)
    return serving.plan_answer(file, conditions)


async def serve(
    services: Services, principal: Principal, file_id: str, conditions: Conditions
) -> Content:
    """Returns the content or a part of it. No connection is held while it is sent."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        file = await _find_visible(tx, principal, file_id)
    plan = serving.plan_answer(file, conditions)
    parts = as_stream() if plan.range is None else await open_content(services, file, plan.range)
    return Content(plan.status, plan.headers, parts)


async def open_content(
    services: Services, file: FileRecord, part: ByteRange | None = None
) -> AsyncIterator[bytes]:
    """Returns the bytes of a file or of a part of it, which are read while they are sent."""
    try:
        return await services.files.open(file.key, (part.start, part.end) if part else None)
    except FileNotStored:
        raise FileNotFound("The content of this file is no longer stored") from None


def _not_found(file_id: str) -> FileNotFound:
    return FileNotFound(f"There is no file {file_id[:64]}")


# Deleting


async def delete(tx: Tx, services: Services, tenant_id: str | None, file_id: str) -> None:
    """Deletes an uploaded file: its row now, its content after the commit."""
    row = await queries.delete(tx, tenant_id, file_id)
    if row is None:
        raise _not_found(file_id)
    tx.after_commit.append(partial(services.files.delete, row["key"]))
    filename = row["filename"]
    if row["purpose"] == "form":
        # The name is a visitor's.
        filename = ""
        await events.delete(tx, row["tenant_id"], [_event_id_of(row["id"])])
    deleted = FileDeleted(row["id"], filename, row["mime_type"], row["size_bytes"], row["purpose"])
    await events.emit(tx, deleted, tenant_id=row["tenant_id"])


async def release(tx: Tx, services: Services, tenant_id: str, keys: list[str]) -> None:
    """Deletes files that an area has replaced or does not need: their rows now, their contents
    after the commit. Files that were stored before they were counted have no row.
    """
    if keys:
        await queries.delete_by_key(tx, tenant_id, keys)
        tx.after_commit.append(partial(discard, services, keys))


async def release_owned(services: Services, owner_id: str, purpose: Purpose) -> None:
    """Deletes the rows of an owner that no longer exists. Its area has deleted the files."""
    async with services.db.tx(ALL_TENANTS) as tx:
        await queries.delete_by_owner(tx, owner_id, purpose)


class UploadLimit(ConcurrencyLimit):
    """Limits how many files of one tenant arrive at the same time: each has some megabytes in
    memory. One per process.
    """

    def __init__(self, max_uploads: int = _MAX_UPLOADS) -> None:
        super().__init__(max_uploads)
