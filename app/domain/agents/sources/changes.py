"""Changes that wait for a review: lists, applies and discards them."""

from app.domain.platform.files import api as files
from app.jobs import work
from app.kit import paging
from app.kit.paging import Page, Paged
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import entry_queries, queries, service
from .errors import SourceBusy
from .schemas import DocumentSourceView, SourceChangeView
from .work_kinds import APPLY


async def list_page(
    tx: Tx, agent_id: str, source_id: str, page: Page, *, change: str | None
) -> Paged[SourceChangeView]:
    views, total = await entry_queries.list_changes(tx, agent_id, source_id, page, change=change)
    if not views and not await queries.exists(tx, agent_id, source_id):
        raise service.not_found(source_id)
    return paging.paged(views, total, page)


async def apply(tx: Tx, agent_id: str, source_id: str) -> DocumentSourceView:
    row = await service.lock(tx, agent_id, source_id)
    _check_free(row)
    tenant_id = row["tenant_id"]
    work_id = await work.accept(tx, APPLY, tenant_id=tenant_id, ref_id=source_id)
    await queries.set_work(tx, tenant_id, source_id, work_id)
    return await service.get(tx, agent_id, source_id)


async def discard(tx: Tx, services: Services, agent_id: str, source_id: str) -> DocumentSourceView:
    row = await service.lock(tx, agent_id, source_id)
    _check_free(row)
    keys = await entry_queries.discard(tx, row["tenant_id"], source_id)
    await files.release(tx, services, row["tenant_id"], keys)
    await queries.set_status(tx, row["tenant_id"], source_id)
    return await service.get(tx, agent_id, source_id)


def _check_free(row: Row) -> None:
    if row["is_busy"]:
        raise SourceBusy("This source is being read; try again when that is done")
