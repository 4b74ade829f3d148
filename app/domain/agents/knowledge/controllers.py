from typing import Annotated

import msgspec
from litestar import Controller, delete, get, patch, post, put
from litestar.datastructures import UploadFile
from litestar.params import JSONBody, MultipartBody, QueryParameter
from litestar.response import Stream

from app.domain.agents.definition.api import RetrievalSettings
from app.http.dependencies import Id, Page, Principal, Services, Tx
from app.http.paging import OfStatus, Search, Sort
from app.kit import filenames
from app.kit.paging import Paged
from app.kit.views import Data

from . import documents, service, settings, uploads
from .schemas import (
    ChunkView,
    DocumentChange,
    DocumentStatus,
    DocumentView,
    PassageView,
    SearchRequest,
    TrainingAccepted,
    Visibility,
)
from .uploads import DocumentFields

OfVisibility = Annotated[
    Visibility | None, QueryParameter(description="Only public or only internal ones")
]


class TrainingUpload(msgspec.Struct):
    """At most 50 PDF, DOCX, XLSX, PPTX, EPUB, HTML, MD, TXT, CSV, JSON or JSONL files. Unless
    configured otherwise, each has at most 25 MB, and all together have at most 100 MB.
    `visibility` is that of all files; without it, new documents are public, and replaced ones keep
    theirs.
    """

    files: list[UploadFile]
    visibility: Visibility | None = None


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
        fields = DocumentFields(data.visibility)
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

    @put("/retrieval", summary="Change the retrieval settings", needs="agents:write")
    async def replace_retrieval_settings(
        self, tx: Tx, agent_id: Id, data: JSONBody[RetrievalSettings]
    ) -> RetrievalSettings:
        """Replaces all of them: what is left out has its default again. The next turn uses them."""
        return await settings.replace(tx, agent_id, data)

    @get("/documents", summary="List documents", needs="agents:write")
    async def list_documents(
        self,
        tx: Tx,
        page_in: Page,
        agent_id: Id,
        status: OfStatus[DocumentStatus] = None,
        visibility: OfVisibility = None,
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
            status=status,
            visibility=visibility,
            sort=sort,
        )

    @get("/documents/{document_id:str}", summary="Get a document", needs="agents:write")
    async def get_document(self, tx: Tx, agent_id: Id, document_id: Id) -> DocumentView:
        return await documents.get(tx, agent_id, document_id)

    @patch("/documents/{document_id:str}", summary="Change a document", needs="agents:write")
    async def change_document(
        self, tx: Tx, agent_id: Id, document_id: Id, data: JSONBody[DocumentChange]
    ) -> DocumentView:
        """Makes a document public or internal. The next turn sees the change."""
        return await documents.change(tx, agent_id, document_id, data.visibility)

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
