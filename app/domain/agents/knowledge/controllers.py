from typing import Annotated

from litestar import Controller, delete, get, patch, post, put
from litestar.di import NamedDependency, Provide
from litestar.params import JSONBody, MultipartBody, QueryParameter
from litestar.response import Stream

from app.domain.agents.definition.api import RetrievalSettings
from app.http.dependencies import Id, Page, Principal, Services, Tx
from app.http.paging import OfStatus, Search, Sort
from app.http.records import Record, lock_row
from app.kit import filenames
from app.kit.paging import Paged
from app.kit.views import Data

from . import documents, metadata, service, settings, uploads
from .schemas import (
    ChunkView,
    DocumentChange,
    DocumentStatus,
    DocumentView,
    ListConditions,
    PassageView,
    RetriedDocuments,
    SearchRequest,
    TrainingAccepted,
    Visibility,
)
from .upload_schemas import TrainingUpload
from .uploads import DocumentFields

OfVisibility = Annotated[
    Visibility | None, QueryParameter(description="Only public or only internal ones")
]
OfSource = Annotated[str | None, QueryParameter(description="Only those of this source")]


def _provide_conditions(
    status: OfStatus[DocumentStatus] = None,
    visibility: OfVisibility = None,
    tag: Annotated[
        str | None, QueryParameter(max_length=50, description="Only those with this tag")
    ] = None,
    language: Annotated[
        str | None, QueryParameter(max_length=3, description="Only those in this language")
    ] = None,
    group: Annotated[
        str | None, QueryParameter(max_length=50, description="Only those for this group")
    ] = None,
    valid: Annotated[
        bool | None, QueryParameter(description="Only those that are valid now, or only others")
    ] = None,
    source_id: OfSource = None,
) -> ListConditions:
    return ListConditions(
        status=status,
        visibility=visibility,
        tag=tag,
        language=language,
        group=group,
        valid=valid,
        source_id=source_id,
    )


_AGENT = Record(lock_row("agents", id="agent_id"))
_DOCUMENT = Record(lock_row("documents", agent_id="agent_id", id="document_id"))


class KnowledgeController(Controller):
    path = "/api/v1/agents/{agent_id:str}"
    tags = ["Knowledge"]

    @post(
        "/train",
        summary="Add documents",
        stores=True,
        needs="agents:write",
        status_code=202,
        errors=(415,),
        upload=True,
        idempotent=False,
        full_files=4,
    )
    async def train_agent(
        self,
        services: Services,
        principal: Principal,
        agent_id: Id,
        data: MultipartBody[TrainingUpload],
    ) -> TrainingAccepted:
        """Each file becomes a document that workers read in the background. A file with the name of
        a document replaces it, as soon as it has been read. A file that cannot be read fails alone:
        see `error` of its document.
        """
        fields = DocumentFields(metadata=metadata.list_columns(metadata.read_form(data)))
        return await uploads.train(services, principal, agent_id, data.files, fields)

    @post(
        "/search",
        summary="Search documents",
        needs="agents:write",
        status_code=200,
        idempotent=False,
    )
    async def search_documents(
        self, services: Services, principal: Principal, agent_id: Id, data: JSONBody[SearchRequest]
    ) -> Data[list[PassageView]]:
        """The passages that come nearest to this question, the best first. No model answers. A turn
        quotes those of the first five that fit well enough.
        """
        return await service.search(services, principal.scope, agent_id, data)

    @get("/retrieval", summary="Get the retrieval settings", needs="agents:write")
    async def get_retrieval_settings(self, tx: Tx, agent_id: Id) -> RetrievalSettings:
        return await settings.get(tx, agent_id)

    @put("/retrieval", summary="Change the retrieval settings", needs="agents:write", record=_AGENT)
    async def replace_retrieval_settings(
        self, tx: Tx, agent_id: Id, data: JSONBody[RetrievalSettings]
    ) -> RetrievalSettings:
        """Replaces all of them: what is left out has its default again. The next turn uses them."""
        return await settings.replace(tx, agent_id, data)

    @get(
        "/documents",
        summary="List documents",
        needs="agents:write",
        dependencies={"conditions": Provide(_provide_conditions, sync_to_thread=False)},
    )
    async def list_documents(
        self,
        tx: Tx,
        page_in: Page,
        agent_id: Id,
        conditions: NamedDependency[ListConditions],
        search: Search = None,
        sort: Sort = None,
    ) -> Paged[DocumentView]:
        """`search` looks in names. Sort by name, status, size_bytes, chunk_count, created_at or
        processed_at; by default the newest come first.
        """
        return await documents.list_page(
            tx,
            agent_id,
            page_in,
            search=search,
            sort=sort,
            conditions=conditions,
        )

    @post(
        "/documents/retry-failed",
        summary="Retry all failed documents",
        stores=True,
        needs="agents:write",
        status_code=202,
    )
    async def retry_failed_documents(self, tx: Tx, agent_id: Id) -> RetriedDocuments:
        """Reads the stored files of all documents again that have failed. `reindex` does it for
        one.
        """
        return await documents.retry_failed(tx, agent_id)

    @get("/documents/{document_id:str}", summary="Get a document", needs="agents:write")
    async def get_document(self, tx: Tx, agent_id: Id, document_id: Id) -> DocumentView:
        return await documents.get(tx, agent_id, document_id)

    @patch(
        "/documents/{document_id:str}",
        summary="Change a document",
        needs="agents:write",
        record=_DOCUMENT,
    )
    async def change_document(
        self, tx: Tx, agent_id: Id, document_id: Id, data: JSONBody[DocumentChange]
    ) -> DocumentView:
        """Changes who is answered from a document, and what filters find it by. The next turn sees
        the change; words are compared in another language from the next reading on.
        """
        return await documents.change(tx, agent_id, document_id, data)

    @delete("/documents/{document_id:str}", summary="Delete a document", needs="agents:write")
    async def delete_document(
        self, tx: Tx, services: Services, agent_id: Id, document_id: Id
    ) -> None:
        """The agent no longer sees it. A worker deletes its text."""
        await documents.delete(tx, services, agent_id, document_id)

    @get("/documents/{document_id:str}/chunks", summary="List chunks", needs="agents:write")
    async def list_chunks(
        self,
        services: Services,
        principal: Principal,
        page_in: Page,
        agent_id: Id,
        document_id: Id,
    ) -> Paged[ChunkView]:
        """The passages into which the document was split, in order."""
        return await documents.list_chunks(
            services, principal.scope, agent_id, document_id, page_in
        )

    @get(
        "/documents/{document_id:str}/content",
        summary="Download a document",
        needs="agents:write",
        media_type="application/octet-stream",
    )
    async def get_document_content(
        self, services: Services, principal: Principal, agent_id: Id, document_id: Id
    ) -> Stream:
        """The file as it was uploaded, as an attachment."""
        file = await documents.open_content(services, principal.scope, agent_id, document_id)
        headers = {
            "content-disposition": filenames.as_attachment(file.name),
            "content-length": str(file.size_bytes),
            "content-type": file.mime_type,
        }
        return Stream(file.parts, headers=headers)

    @post(
        "/documents/{document_id:str}/reindex",
        summary="Reindex a document",
        stores=True,
        needs="agents:write",
        status_code=202,
    )
    async def reindex_document(
        self, tx: Tx, services: Services, agent_id: Id, document_id: Id
    ) -> DocumentView:
        """Reads the stored file again. Until then the agent uses the chunks of the last reading."""
        return await documents.reindex(tx, services, agent_id, document_id)
