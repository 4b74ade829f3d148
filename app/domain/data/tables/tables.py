"""Tables: creates, shows, changes and deletes them."""

from app.context import RequestContext
from app.domain.platform.events import api as events
from app.kit import clock, paging, validation
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from db.fast import Row
from db.models import DataTable
from db.session import Tx

from . import columns, definitions, queries, schema_changes
from .events import DataTableCreated, DataTableDeleted, DataTableUpdated
from .rows import not_found
from .schemas import CreateTable, TableView, UpdateTable


async def list_page(
    tx: Tx, page: Page, *, search: str | None, sort: str | None
) -> Paged[TableView]:
    rows, total = await queries.list_page(tx, page, search=search, sort=sort)
    return paging.paged([_build_view(row) for row in rows], total, page)


async def get(tx: Tx, table_id: str) -> TableView:
    row = await queries.find_row(tx, table_id)
    if row is None:
        raise not_found(table_id)
    return _build_view(row)


def _build_view(row: Row) -> TableView:
    return TableView(
        row["id"],
        row["name"],
        row["description"],
        definitions.build_views(columns.decode(row["columns"])),
        row["row_count"],
        row["created_at"],
        row["updated_at"],
    )


async def create(context: RequestContext, data: CreateTable) -> TableView:
    tx, tenant_id = context.tx, context.principal.home
    await queries.check_quota(tx, tenant_id)
    table_columns = definitions.build_columns(data.columns)
    table = DataTable(
        id=new_id("tbl"),
        tenant_id=tenant_id,
        name=data.name,
        description=data.description,
        columns=queries.encode_columns(table_columns),
        next_key=len(table_columns) + 1,
        created_by=context.principal.user_id,
    )
    session = await tx.session()
    session.add(table)
    await session.flush()
    names = [column.name for column in table_columns]
    await events.emit(tx, DataTableCreated(table.id, table.name, names), tenant_id=tenant_id)
    return await get(tx, table.id)


async def update(tx: Tx, table_id: str, data: UpdateTable) -> TableView:
    """A change of columns is checked against all rows, which are rewritten where that is needed."""
    table = await _find(tx, table_id)
    fields = validation.set_fields(data)
    changes = fields.pop("columns", None)
    if changes is not None:
        fields |= await schema_changes.apply(tx, table, data.columns or [])
    await events.save_changes(
        tx,
        table,
        fields,
        lambda names: DataTableUpdated(table.id, table.name, _name_changes(names)),
    )
    return await get(tx, table_id)


def _name_changes(names: list[str]) -> list[str]:
    return [name for name in names if name in {"name", "description", "columns"}]


async def delete(tx: Tx, table_id: str) -> None:
    """The table is no longer visible; its rows are removed in the background."""
    table = await _find(tx, table_id)
    table.deleted_at = clock.now()
    await (await tx.session()).flush()
    deleted = DataTableDeleted(table.id, table.name)
    await events.emit(tx, deleted, tenant_id=table.tenant_id)


async def _find(tx: Tx, table_id: str) -> DataTable:
    table = await queries.find_for_change(tx, table_id)
    if table is None:
        raise not_found(table_id)
    return table
