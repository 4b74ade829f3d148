from functools import partial
from typing import Annotated

from litestar import Controller, Response, delete, get, head, post
from litestar.params import QueryParameter
from litestar.response import Stream

from app.domain.platform.storage import api as storage
from app.domain.platform.storage.schemas import StorageView
from app.http import idempotency, multipart
from app.http.dependencies import HttpRequest, Id, Page, Principal, Services, Tx
from app.http.paging import Search, Sort
from app.kit.paging import Paged
from app.kit.views import Data
from db.fast import tenant_of

from . import service
from .schemas import FileView, ListedPurpose
from .serving import Conditions

_FIELD = "file"


class FileController(Controller):
    path = "/api/v1/files"
    tags = ["Files"]

    @post(
        summary="Upload a file",
        needs="files:write",
        streamed_file=_FIELD,
        idempotent="streamed",
        errors=(408,),
    )
    async def upload_file(
        self, request: HttpRequest, services: Services, principal: Principal
    ) -> Data[FileView]:
        """A file of at most 100 MB, unless configured otherwise. Its `mime_type` is detected from
        the content. Over the tenant's quota: 413 `quota_exceeded`. A body that does not continue
        for 60 seconds, or has less than 8 KiB per second: 408 `request_timeout`. At most 20 files
        of a tenant arrive at a time: 429 `rate_limited`.
        """
        open_upload = partial(multipart.open_file, request, _FIELD)
        store_answer = partial(idempotency.store_answer, request)
        return await service.upload(
            services, principal, request.content_length, open_upload, store_answer
        )

    @get(summary="List files", needs="files:read")
    async def list_files(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        search: Search = None,
        mime_type: Annotated[
            str | None, QueryParameter(max_length=200, description="Only files of this type")
        ] = None,
        purpose: Annotated[
            ListedPurpose | None,
            QueryParameter(description="Only uploads to this API, or only those to forms"),
        ] = None,
        sort: Sort = None,
    ) -> Paged[FileView]:
        """`search` looks in file names. Sort by filename, size_bytes, mime_type or created_at; by
        default the newest come first. A list of all tenants is sorted by created_at alone.
        Documents and profile pictures are not among them, and files of forms only for callers with
        submissions:read.
        """
        return await service.list_page(
            tx, principal, page_in, search=search, mime_type=mime_type, purpose=purpose, sort=sort
        )

    @get("/usage", summary="Get storage usage", needs="files:read")
    async def get_file_usage(self, tx: Tx, principal: Principal) -> StorageView:
        """Used and allowed bytes of the tenant. `GET /api/v1/usage` has them by kind."""
        return await storage.get_usage(tx, principal.home)

    @get("/{file_id:str}", summary="Get a file", needs="files:read")
    async def get_file(self, tx: Tx, principal: Principal, file_id: Id) -> Data[FileView]:
        """Its metadata, without the content."""
        return Data(await service.get(tx, principal, file_id))

    @get(
        "/{file_id:str}/content",
        summary="Download a file",
        needs="files:read",
        media_type="application/octet-stream",
        errors=(416,),
    )
    async def get_file_content(
        self, request: HttpRequest, services: Services, principal: Principal, file_id: Id
    ) -> Stream:
        """The content as an attachment, or with `Range` a part of it (206); several ranges are
        answered with all of it. `ETag` is the hash of the content, for `If-None-Match` (304) and
        `If-Range`. Types that a browser might run are sent as application/octet-stream.
        """
        conditions = _read_conditions(request)
        content = await service.serve(services, principal, file_id, conditions)
        return Stream(content.parts, status_code=content.status, headers=content.headers)

    @head("/{file_id:str}/content", summary="Describe a file's content", needs="files:read")
    async def head_file_content(
        self, request: HttpRequest, services: Services, principal: Principal, file_id: Id
    ) -> Response[None]:
        """A range is defined for GET alone."""
        conditions = Conditions(if_none_match=request.headers.get("if-none-match"))
        plan = await service.describe_content(services, principal, file_id, conditions)
        return Response(None, status_code=plan.status, headers=plan.headers)

    @delete("/{file_id:str}", summary="Delete a file", needs="files:write")
    async def delete_file(self, tx: Tx, services: Services, file_id: Id) -> None:
        """Rows that refer to the file keep its id."""
        await service.delete(tx, services, tenant_of(tx), file_id)


def _read_conditions(request: HttpRequest) -> Conditions:
    headers = request.headers
    return Conditions(headers.get("range"), headers.get("if-range"), headers.get("if-none-match"))
