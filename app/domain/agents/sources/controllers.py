from typing import Annotated

from litestar import Controller, delete, get, patch, post
from litestar.params import JSONBody, QueryParameter

from app.http.dependencies import Context, Id, Page, Services, Tx
from app.http.paging import OfStatus, Search, Sort
from app.http.records import Record, lock_row
from app.kit.paging import Paged

from . import changes, service
from .schemas import (
    ChangeSource,
    ChangeType,
    CreateSource,
    DocumentSourceView,
    SourceChangeView,
    SourceStatus,
)

OfChange = Annotated[ChangeType | None, QueryParameter(description="Only changes of this type")]
KeepDocuments = Annotated[
    bool | None, QueryParameter(description="Keeps the documents, as if they had been uploaded")
]

_SOURCE = Record(lock_row("document_sources", agent_id="agent_id", id="source_id"))


class SourceController(Controller):
    path = "/api/v1/agents/{agent_id:str}/sources"
    tags = ["Sources"]

    @post(summary="Add a source", stores=True, needs="agents:write", cost="execute")
    async def create_source(
        self, context: Context, agent_id: Id, data: JSONBody[CreateSource]
    ) -> DocumentSourceView:
        """A worker reads it at once, and then by its schedule."""
        return await service.create(context, agent_id, data)

    @get(summary="List sources", needs="agents:write")
    async def list_sources(
        self,
        tx: Tx,
        page_in: Page,
        agent_id: Id,
        status: OfStatus[SourceStatus] = None,
        search: Search = None,
        sort: Sort = None,
    ) -> Paged[DocumentSourceView]:
        """`search` looks in names. Sort by name, status, created_at or last_synced_at; by default
        the newest come first.
        """
        return await service.list_page(
            tx, agent_id, page_in, status=status, search=search, sort=sort
        )

    @get("/{source_id:str}", summary="Get a source", needs="agents:write")
    async def get_source(self, tx: Tx, agent_id: Id, source_id: Id) -> DocumentSourceView:
        return await service.get(tx, agent_id, source_id)

    @patch("/{source_id:str}", summary="Change a source", needs="agents:write", record=_SOURCE)
    async def change_source(
        self, context: Context, agent_id: Id, source_id: Id, data: JSONBody[ChangeSource]
    ) -> DocumentSourceView:
        """The next sync uses the new settings."""
        return await service.change(context, agent_id, source_id, data)

    @delete("/{source_id:str}", summary="Delete a source", needs="agents:write")
    async def delete_source(
        self,
        tx: Tx,
        services: Services,
        agent_id: Id,
        source_id: Id,
        keep_documents: KeepDocuments = None,
    ) -> None:
        """Deletes its documents too, unless they are kept."""
        await service.delete(tx, services, agent_id, source_id, keep_documents=bool(keep_documents))

    @post(
        "/{source_id:str}/sync",
        summary="Sync a source",
        stores=True,
        needs="agents:write",
        cost="execute",
        status_code=202,
    )
    async def sync_source(self, tx: Tx, agent_id: Id, source_id: Id) -> DocumentSourceView:
        """A worker reads it now. One that is being read already is not read twice."""
        return await service.request_sync(tx, agent_id, source_id)

    @get("/{source_id:str}/changes", summary="List changes", needs="agents:write")
    async def list_source_changes(
        self, tx: Tx, page_in: Page, agent_id: Id, source_id: Id, change: OfChange = None
    ) -> Paged[SourceChangeView]:
        """What waits for a review, because the source is reviewed, or because more than half of
        its documents have vanished.
        """
        return await changes.list_page(tx, agent_id, source_id, page_in, change=change)

    @post(
        "/{source_id:str}/changes/apply",
        summary="Apply changes",
        stores=True,
        needs="agents:write",
        status_code=202,
    )
    async def apply_source_changes(self, tx: Tx, agent_id: Id, source_id: Id) -> DocumentSourceView:
        """A worker takes in the contents that were found, and deletes the documents that are
        gone.
        """
        return await changes.apply(tx, agent_id, source_id)

    @post(
        "/{source_id:str}/changes/discard",
        summary="Discard changes",
        needs="agents:write",
        status_code=200,
    )
    async def discard_source_changes(
        self, tx: Tx, services: Services, agent_id: Id, source_id: Id
    ) -> DocumentSourceView:
        """The documents stay as they are. A change is shown again when there is another content."""
        return await changes.discard(tx, services, agent_id, source_id)
