from typing import Annotated

from litestar import Controller, delete, get, post
from litestar.params import JSONBody, QueryParameter

from app.http.dependencies import Id, Page, Services, Tx
from app.http.paging import From, To, parse_time
from app.kit.paging import Paged

from . import service
from .queries import Filter
from .schemas import QueueLoads, RetriedWork, RetryWork, WorkStatus, WorkView

_Status = Annotated[
    WorkStatus, QueryParameter(description="Failed for good, waiting for a worker, or running")
]
_Kind = Annotated[str | None, QueryParameter(max_length=64, description="Only this kind of work")]
_RecordId = Annotated[
    str | None, QueryParameter(max_length=200, description="Only work for this record")
]


class WorkController(Controller):
    path = "/api/v1/work"
    tags = ["Work"]

    @get(summary="List work in the background", needs="work:read")
    async def list_work(
        self,
        tx: Tx,
        services: Services,
        page_in: Page,
        *,
        status: _Status = "dead",
        kind: _Kind = None,
        record_id: _RecordId = None,
        since: From = None,
        until: To = None,
    ) -> Paged[WorkView]:
        """The newest first, by when it was accepted. Work that has failed for good is listed for
        seven days. super_admin sees the work of all tenants, and that of the instance itself.
        """
        service.check_kind(services, kind)
        filters = Filter(
            status,
            None if kind is None else [kind],
            record_id,
            parse_time("from", since),
            parse_time("to", until),
        )
        return await service.list_page(tx, services, page_in, filters)

    @get("/queues", summary="List queues and their age", needs="work:read")
    async def list_work_queues(self, tx: Tx, services: Services) -> QueueLoads:
        """How much work waits, runs or has failed for good, and for how long the oldest waits."""
        return await service.list_queues(tx, services)

    @get("/{work_id:str}", summary="Get work in the background", needs="work:read")
    async def get_work(self, tx: Tx, services: Services, work_id: Id) -> WorkView:
        """Work that is done or was cancelled is not found."""
        return await service.get(tx, services, work_id)

    @post(
        "/{work_id:str}/retry",
        summary="Retry work that has failed",
        needs="work:write",
        status_code=200,
        errors=(404, 409),
    )
    async def retry_work(self, tx: Tx, services: Services, work_id: Id) -> WorkView:
        """It waits for a worker again, with all its attempts, and so does the record that it is
        for. Some kinds cannot be retried; `instead` says what helps.
        """
        return await service.retry(tx, services, work_id)

    @post("/retry", summary="Retry all work that has failed", needs="work:write", status_code=200)
    async def retry_all_work(
        self, tx: Tx, services: Services, data: JSONBody[RetryWork]
    ) -> RetriedWork:
        """Retries dead work that matches, 200 at most, the oldest first. Kinds that cannot be
        retried are left out.
        """
        return await service.retry_many(tx, services, data)

    @delete("/{work_id:str}", summary="Dismiss work that has failed", needs="work:write")
    async def dismiss_work(self, tx: Tx, work_id: Id) -> None:
        """Takes dead work off the list. The record that it was for stays as it is."""
        await service.dismiss(tx, work_id)
