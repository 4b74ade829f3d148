"""Saved views: filters of lists that a user keeps under a name, alone or for the tenant."""

from app.context import RequestContext
from app.kit import paging, validation
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.security.principal import Principal
from db.models import SavedView
from db.session import Tx

from . import queries
from .errors import SavedViewNotFound
from .schemas import CreateSavedView, SavedViewView, UpdateSavedView

_OF_ADMINISTRATORS = "admin:users"


async def list_page(
    tx: Tx, principal: Principal, page: Page, kind: str | None, sort: str | None
) -> Paged[SavedViewView]:
    views, total = await queries.list_page(tx, principal, page, kind, sort)
    return paging.paged(views, total, page)


async def get(tx: Tx, principal: Principal, view_id: str) -> SavedViewView:
    view = await queries.find_view(tx, principal, view_id)
    if view is None:
        raise _not_found(view_id)
    return view


async def create(context: RequestContext, data: CreateSavedView) -> SavedViewView:
    tx, principal = context.tx, context.principal
    await queries.check_quota(tx, principal.user_id)
    view = SavedView(
        id=new_id("viw"),
        tenant_id=principal.home,
        user_id=principal.user_id,
        **validation.set_fields(data),
    )
    session = await tx.session()
    session.add(view)
    await session.flush()
    return await get(tx, principal, view.id)


async def update(context: RequestContext, view_id: str, data: UpdateSavedView) -> SavedViewView:
    view = await _find_own(context, view_id)
    for name, value in validation.set_fields(data).items():
        setattr(view, name, value)
    await (await context.tx.session()).flush()
    return await get(context.tx, context.principal, view_id)


async def delete(context: RequestContext, view_id: str) -> None:
    view = await _find_own(context, view_id)
    await (await context.tx.session()).delete(view)


async def _find_own(context: RequestContext, view_id: str) -> SavedView:
    """Raises Forbidden for a shared view of somebody else, except for administrators."""
    principal = context.principal
    view = await queries.find(context.tx, principal, view_id)
    if view is None:
        raise _not_found(view_id)
    if view.user_id != principal.user_id:
        principal.require(_OF_ADMINISTRATORS)
    return view


def _not_found(view_id: str) -> SavedViewNotFound:
    return SavedViewNotFound(f"There is no saved view {view_id[:64]}")
