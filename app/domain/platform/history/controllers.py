from typing import Annotated

from litestar import Controller, get
from litestar.params import QueryParameter

from app.http.dependencies import Page, Principal, Tx
from app.kit.paging import Paged

from . import service
from .schemas import HistoryEntryView, Kind


class HistoryController(Controller):
    path = "/api/v1/history"
    tags = ["History"]

    @get(summary="List changes of records", signed_in=True)
    async def list_history(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        kind: Annotated[Kind, QueryParameter(description="The kind of the records")],
        record_id: Annotated[
            str | None, QueryParameter(max_length=100, description="Only this record's")
        ] = None,
    ) -> Paged[HistoryEntryView]:
        """The newest first, for callers who may read records of this kind. Fields that the caller
        may not see are left out. Entries are kept for 400 days, also those of deleted records.
        """
        return await service.list_page(tx, principal, page_in, kind, record_id)
