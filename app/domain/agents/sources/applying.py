"""Takes in what a source has as documents of its agent."""

from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from app.domain.agents.knowledge.api import Kind, kind_of, list_columns, source_documents, uploads
from app.domain.agents.knowledge.errors import DocumentNameTaken, TooManyDocuments
from app.domain.agents.knowledge.schemas import DocumentChange
from app.domain.platform.storage.errors import QuotaExceeded
from app.services import Services
from db.session import Tx

from . import queries
from .content import Content, list_names
from .failures import DocumentSkipped, SyncFailed
from .kinds.protocol import Item
from .settings import Source


class FetchedFile:
    """The content of a document, in memory, as an upload."""

    def __init__(self, filename: str, body: bytes) -> None:
        self._filename, self._body = filename, memoryview(body)

    @property
    def filename(self) -> str:
        return self._filename

    async def read(self, size: int = -1) -> bytes:
        part = self._body if size < 0 else self._body[:size]
        self._body = self._body[len(part) :]
        return bytes(part)

    async def close(self) -> None:
        return


def propose_names(item: Item, content: Content) -> list[str]:
    return list_names(content.title, item.name_path, content.kind)


def vary_name(name: str, url: str) -> list[str]:
    """Returns names for a change, whose own name may have been given to another document since."""
    title, _, kind = name.rpartition(".")
    return [name, *list_names(title, urlsplit(url).path, cast("Kind", kind))[1:]]


async def take_in(
    services: Services,
    source: Source,
    url: str,
    names: list[str],
    body: bytes,
    replaced: str | None,
) -> str:
    """Returns the name of the document, the first that no other one has. One that is replaced keeps
    its name `replaced`, unless it has another format now. Only a new one gets the fields of the
    source.
    """
    ids = (source.tenant_id, source.agent_id, source.id)
    metadata: dict[str, Any] = {}
    if replaced is None:
        document = await _find_fields(services, source)
        metadata = list_columns(document)
    elif kind_of(replaced) == kind_of(names[0]):
        names = [replaced, *names]
    else:
        async with services.db.tx(source.tenant_id) as tx:
            metadata = await source_documents.find_metadata(tx, ids[0], source.id, url)
            await source_documents.delete(tx, services, *ids, [url])
    fields = uploads.DocumentFields(metadata=metadata, source_id=source.id, source_url=url)
    name = await _store(services, source, names, body, fields)
    if replaced is None and await _find_fields(services, source) != document:
        # They were changed at that moment, when this document was not there yet. The next change
        # may be under way.
        async with services.db.tx(source.tenant_id) as tx:
            await source_documents.lock(tx, source.tenant_id, source.agent_id)
            await source_documents.change(tx, *ids, await _read_fields(tx, source), url)
    return name


async def _find_fields(services: Services, source: Source) -> DocumentChange:
    async with services.db.tx(source.tenant_id, autocommit=True) as tx:
        return await _read_fields(tx, source)


async def _read_fields(tx: Tx, source: Source) -> DocumentChange:
    """Returns what new documents of the source get now."""
    row = await queries.find_settings(tx, source.tenant_id, source.id)
    return msgspec.convert({} if row is None else row["document"], DocumentChange)


async def _store(
    services: Services,
    source: Source,
    names: list[str],
    body: bytes,
    fields: uploads.DocumentFields,
) -> str:
    for name in names:
        try:
            views = await uploads.take_in(
                services,
                source.tenant_id,
                source.agent_id,
                [FetchedFile(name, body)],
                fields,
                created_by=source.created_by,
            )
        except DocumentNameTaken:
            continue
        except (TooManyDocuments, QuotaExceeded) as error:
            raise SyncFailed(f"cannot be stored: {error.message}") from None
        return views[0].name
    raise DocumentSkipped("has a name that other documents of the agent have")
