"""SQL of saved views."""

from typing import Final

from sqlalchemy import or_, select

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page, SortOrders
from app.security.principal import Principal
from db.fast import tenant_of
from db.lists import Total, Where
from db.models import SavedView
from db.session import Tx
from db.views import View

from .schemas import SavedViewView

MAX_VIEWS: Final = 100
_VIEW = View(SavedViewView)
_ORDERS = SortOrders("name", SavedView.id, name=SavedView.name, created_at=SavedView.created_at)
_FIND = f"""
SELECT {_VIEW.columns} FROM saved_views
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND (is_shared OR user_id = $3)
"""


async def list_page(
    tx: Tx, principal: Principal, page: Page, kind: str | None, sort: str | None
) -> tuple[list[SavedViewView], Total]:
    where = Where(tenant_of(tx))
    where.add("(is_shared OR user_id = $n)", principal.user_id)
    where.equal("kind", kind)
    return await paging.fetch(tx, _VIEW, "saved_views", where, _ORDERS.sql(sort), page)


async def find_view(tx: Tx, principal: Principal, view_id: str) -> SavedViewView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, view_id, principal.user_id)


async def find(tx: Tx, principal: Principal, view_id: str) -> SavedView | None:
    """Returns a view that the principal may see, to be changed."""
    is_visible = or_(SavedView.is_shared, SavedView.user_id == principal.user_id)
    statement = select(SavedView).where(SavedView.id == view_id, is_visible).with_for_update()
    view: SavedView | None = await (await tx.session()).scalar(statement)
    return view


async def check_quota(tx: Tx, user_id: str) -> None:
    own = SavedView.user_id == user_id
    await quota.check(tx, SavedView, MAX_VIEWS, "saved views", own, owner="A user")
