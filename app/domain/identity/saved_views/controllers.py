from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.http.dependencies import Context, Id, Page, Principal, Tx
from app.http.paging import Sort
from app.http.records import Record, lock_row
from app.kit.paging import Paged

from . import service
from .schemas import CreateSavedView, SavedViewView, UpdateSavedView, ViewKind

_VIEW = Record(lock_row("saved_views", id="saved_view_id"))
OfKind = Annotated[ViewKind | None, QueryParameter(description="Only views of this list")]


class SavedViewController(Controller):
    path = "/api/v1/views"
    tags = ["Saved views"]
    opt = {"signed_in": True}

    @get(summary="List saved views")
    async def list_views(
        self, tx: Tx, principal: Principal, page_in: Page, kind: OfKind = None, sort: Sort = None
    ) -> Paged[SavedViewView]:
        """Your own and the shared ones. Sort by name or created_at; by name by default."""
        return await service.list_page(tx, principal, page_in, kind, sort)

    @post(summary="Save a view", errors=(409,))
    async def create_view(self, context: Context, data: JSONBody[CreateSavedView]) -> SavedViewView:
        """The filters are stored as they are. A user has at most 100 views."""
        return await service.create(context, data)

    @get("/{saved_view_id:str}", summary="Get a saved view")
    async def get_view(self, tx: Tx, principal: Principal, saved_view_id: Id) -> SavedViewView:
        """Your own, or a shared one."""
        return await service.get(tx, principal, saved_view_id)

    @put("/{saved_view_id:str}", summary="Change a saved view", record=_VIEW)
    async def update_view(
        self, context: Context, saved_view_id: Id, data: JSONBody[UpdateSavedView]
    ) -> SavedViewView:
        """Your own; a shared one of somebody else needs admin:users."""
        return await service.update(context, saved_view_id, data)

    @delete("/{saved_view_id:str}", summary="Delete a saved view")
    async def delete_view(self, context: Context, saved_view_id: Id) -> None:
        """Your own; a shared one of somebody else needs admin:users."""
        await service.delete(context, saved_view_id)
