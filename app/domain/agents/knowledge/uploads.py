"""Takes in files as documents of an agent: stores them, and accepts the work that reads them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import asyncpg
import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.platform.files import api as files
from app.domain.platform.files.api import StoredUpload
from app.jobs import work
from app.kit import filenames
from app.kit.errors import FileTooLarge, Invalid, UnsupportedFileType
from app.kit.files import Upload
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import parsing, queries
from .errors import DocumentNameTaken, TooManyDocuments
from .files import document_folder
from .schemas import DocumentView, TrainingAccepted, Visibility
from .work_kinds import INGEST

MAX_FILES: Final = 50
MAX_DOCUMENTS: Final = 10_000
_MEGABYTE = 1024 * 1024


class DocumentFields(msgspec.Struct, frozen=True):
    """What is set with a file, by columns. Without a visibility, a new document is public. What is
    left out, a replaced document keeps. A document of a source has its id and the address that it
    came from.
    """

    visibility: Visibility | None = None
    metadata: Mapping[str, Any] = {}
    source_id: str | None = None
    source_url: str | None = None

    def to_columns(self) -> dict[str, Any]:
        visibility = {} if self.visibility is None else {"visibility": self.visibility}
        return {**self.metadata, **visibility}


NO_FIELDS: Final = DocumentFields()


class _Document(msgspec.Struct, frozen=True):
    """An uploaded file that is stored, or the reason why it was refused."""

    id: str
    name: str
    mime_type: str
    size_bytes: int
    stored: StoredUpload | None = None
    error: str | None = None
    fields: DocumentFields = NO_FIELDS


async def train(
    services: Services,
    principal: Principal,
    agent_id: str,
    uploads: Sequence[Upload],
    fields: DocumentFields = NO_FIELDS,
) -> TrainingAccepted:
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        tenant_id = (await agents.find(tx, agent_id)).tenant_id
    views = await take_in(
        services, tenant_id, agent_id, uploads, fields, created_by=principal.user_id
    )
    return _build_answer(views)


async def take_in(
    services: Services,
    tenant_id: str,
    agent_id: str,
    uploads: Sequence[Upload],
    fields: DocumentFields,
    *,
    created_by: str | None,
) -> list[DocumentView]:
    """Stores the files durably, then their documents and work together. A file that cannot be used
    fails alone. No transaction is open while files are stored. Raises DocumentNameTaken for a
    file of a source that would replace a document from elsewhere.
    """
    names = _check_uploads(uploads)
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        await _check_count(tx, tenant_id, agent_id, names)
    documents: list[_Document] = []
    is_accepted = False
    try:
        for name, upload in zip(names, uploads, strict=True):
            document = await _store(services, tenant_id, agent_id, name, upload)
            documents.append(msgspec.structs.replace(document, fields=fields))
        async with services.db.tx(tenant_id) as tx:
            views = await _accept(tx, services, tenant_id, agent_id, documents, created_by)
            is_accepted = True
    except BaseException as error:
        # A commit that fails may have succeeded, although its reply was lost.
        if not is_accepted:
            keys = [document.stored.key for document in documents if document.stored]
            await files.discard(services, keys)
        if isinstance(error, asyncpg.ForeignKeyViolationError):
            raise AgentNotFound("This agent was deleted at this moment") from None
        raise
    return views


def _check_uploads(uploads: Sequence[Upload]) -> list[str]:
    """Returns the names of the files."""
    if not 0 < len(uploads) <= MAX_FILES:
        raise Invalid.field("files", f"must be 1 to {MAX_FILES} files")
    names = [filenames.clean(upload.filename) for upload in uploads]
    for name in names:
        if not name:
            raise Invalid.field("files", "must each have a name")
        if names.count(name) > 1:
            raise Invalid.field("files", f"has two files with the name {name[:100]}")
    if all(parsing.kind_of(name) is None for name in names):
        ending = "the name's ending tells the format"
        raise UnsupportedFileType(f"Upload {parsing.FORMATS} files; {ending}")
    return names


async def _check_count(tx: Tx, tenant_id: str, agent_id: str, names: list[str]) -> None:
    """Raises TooManyDocuments. Files with the name of a document replace it."""
    replaced = await queries.list_by_name(tx, tenant_id, agent_id, names)
    count = await queries.count(tx, tenant_id, agent_id)
    if count + len(names) - len(replaced) > MAX_DOCUMENTS:
        raise TooManyDocuments(f"An agent has at most {MAX_DOCUMENTS} documents; delete some first")


async def _store(
    services: Services, tenant_id: str, agent_id: str, name: str, upload: Upload
) -> _Document:
    """Stores a file as that of a new document: the one that it replaces may be deleted meanwhile,
    together with its files.
    """
    document_id = new_id("doc")
    kind = parsing.kind_of(name)
    if kind is None:
        error = f"The file is not a {parsing.FORMATS} file"
        return _Document(document_id, name, "application/octet-stream", 0, error=error)
    mime_type, content = parsing.MIME_TYPES[kind], _Content(upload)
    max_mb = services.settings.max_body_mb
    try:
        stored = await files.store(
            services,
            tenant_id,
            content,
            filename=name,
            purpose="document",
            max_bytes=max_mb * _MEGABYTE,
            key=document_folder(agent_id, document_id) + new_id("fil"),
            owner_id=agent_id,
        )
    except FileTooLarge:
        async for _ in content:
            pass
        error = f"The file is larger than {max_mb} MB"
        return _Document(document_id, name, mime_type, content.size, error=error)
    return _Document(document_id, name, mime_type, content.size, stored)


class _Content:
    """The bytes of an upload, read and counted part by part."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self.size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while part := await self._upload.read(_MEGABYTE):
            self.size += len(part)
            yield part


async def _accept(
    tx: Tx,
    services: Services,
    tenant_id: str,
    agent_id: str,
    documents: list[_Document],
    created_by: str | None,
) -> list[DocumentView]:
    await queries.lock_uploads(tx, tenant_id, agent_id)
    await queries.add_knowledge_base(tx, tenant_id, agent_id, services.settings.embedding_model)
    names = [document.name for document in documents]
    replaced = await queries.list_by_name(tx, tenant_id, agent_id, names)
    ids = {row["name"]: row["id"] for row in replaced}
    _check_origins(replaced, documents)
    for row in replaced:
        # Work is locked before the document, as a worker does that finishes it.
        if row["work_id"] is not None:
            await work.cancel(tx, services.doorbell, tenant_id, row["work_id"])
    views = [
        await _insert(tx, tenant_id, agent_id, ids.get(document.name, document.id), document)
        for document in documents
    ]
    keys = [row["file_key"] for row in replaced if row["file_key"] is not None]
    await files.release(tx, services, tenant_id, keys)
    for document in documents:
        if document.stored is not None:
            await files.record(tx, tenant_id, document.stored, created_by=created_by)
    return views


def _check_origins(replaced: list[Row], documents: list[_Document]) -> None:
    """Uploads replace any document of their name; a source only replaces its own."""
    fields = {document.name: document.fields for document in documents}
    for row in replaced:
        origin = fields[row["name"]].source_id, fields[row["name"]].source_url
        if origin[0] is not None and origin != (row["source_id"], row["source_url"]):
            raise DocumentNameTaken(f"There is another document with the name {row['name'][:100]}")


async def _insert(
    tx: Tx, tenant_id: str, agent_id: str, document_id: str, document: _Document
) -> DocumentView:
    stored, work_id = document.stored, None
    if stored is not None:
        work_id = await work.accept(tx, INGEST, tenant_id=tenant_id, ref_id=document_id)
    return await queries.upsert(
        tx,
        tenant_id,
        document_id,
        agent_id,
        document.name,
        "failed" if stored is None else "pending",
        document.error,
        document.mime_type,
        document.size_bytes,
        stored.sha256 if stored else None,
        stored.key if stored else None,
        work_id,
        as_json(document.fields.to_columns()),
        document.fields.source_id,
        document.fields.source_url,
    )


def _build_answer(views: list[DocumentView]) -> TrainingAccepted:
    failed = sum(view.status == "failed" for view in views)
    accepted = len(views) - failed
    message = (
        "1 document is being read" if accepted == 1 else f"{accepted} documents are being read"
    )
    if failed:
        message += f"; {failed} cannot be used, see the reason in `error`"
    return TrainingAccepted("training" if accepted else "failed", len(views), message, views)
