from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.data.tables import api as tables
from app.domain.data.tables.errors import RowsTooLarge
from app.kit.errors import Invalid, Problem
from app.templating.expressions import has_templates
from db.session import Tx

from .protocol import ColumnReference, Done, Failed, Id, Kind, NodeCall, NodeType, Outcome


class DataTableConfig(msgspec.Struct, forbid_unknown_fields=True):
    """insert needs values; update values and row_id or filter; delete row_id or filter;
    query takes one of them or none.
    """

    table_id: Id
    operation: Literal["insert", "update", "delete", "query"]
    values: dict[str, Any] | None = None
    filter: (
        Annotated[
            dict[str, Any],
            Meta(description="Column to value, or to an operator and a value: {amount: {gt: 5}}"),
        ]
        | None
    ) = None
    row_id: Id | None = None
    sort: Annotated[str, Meta(max_length=100)] | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


class DataTableNode(NodeType[DataTableConfig]):
    name: ClassVar[str] = "data_table"
    description: ClassVar[str] = "Inserts, updates, deletes or queries rows of a data table"
    config: ClassVar[type[msgspec.Struct]] = DataTableConfig
    example: ClassVar[dict[str, Any]] = {
        "table_id": "tbl_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "operation": "insert",
        "values": {"name": "{{ input.name }}", "amount": "{{ input.amount }}"},
    }
    references: ClassVar[dict[str, Kind]] = {"table_id": "table"}
    literal: ClassVar[frozenset[str]] = frozenset({"operation"})
    permission: ClassVar[str | None] = "data_tables:write"

    def find_problems(self, config: dict[str, Any]) -> Iterator[Problem]:
        operation = config.get("operation")
        has_row, has_filter = config.get("row_id") is not None, config.get("filter") is not None
        if operation in {"insert", "update"} and config.get("values") is None:
            yield "values", f"is required to {operation} rows"
        if operation in {"update", "delete"} and has_row == has_filter:
            yield "", f"needs either row_id or filter to {operation} rows"
        if operation == "query" and has_row and has_filter:
            yield "", "takes either row_id or filter to query rows"

    def list_columns(self, config: dict[str, Any]) -> Iterator[ColumnReference]:
        """Leaves out the fields that every row has."""
        table_id = config["table_id"]
        values, filters, sort = config.get("values"), config.get("filter"), config.get("sort")
        for name in values if isinstance(values, dict) else ():
            yield ColumnReference(table_id, name, f"values.{name}")
        for name in filters if isinstance(filters, dict) else ():
            if name not in tables.ROW_FIELDS:
                yield ColumnReference(table_id, name, f"filter.{name}")
        if isinstance(sort, str) and not has_templates(sort):
            name = sort.removeprefix("-")
            if name and name not in tables.ROW_FIELDS:
                yield ColumnReference(table_id, name, "sort")

    async def run(self, call: NodeCall, config: DataTableConfig) -> Outcome:
        where = (call.tx, call.tenant_id, config.table_id)
        Invalid.check(_find_filter_problems(call.node.config.get("filter"), config))
        match config.operation:
            case "insert":
                row = await tables.insert_row(*where, config.values or {}, source=call.caller_id)
                return Done({"row": msgspec.to_builtins(row)})
            case "update":
                return await _update(where, config)
            case "delete":
                return await _delete(where, config)
        return await _query(where, config)


def _find_filter_problems(saved: Any, config: DataTableConfig) -> Iterator[Problem]:
    """Only the author of the workflow chooses operators, and that all rows match. Where a template
    yields them, anybody who can give the input would.
    """
    filters = config.filter or {}
    if isinstance(saved, dict):
        for name, value in filters.items():
            if isinstance(value, dict) and not isinstance(saved.get(name), dict):
                yield f"filter.{name}", "must be a plain value, since its template has no operator"
    elif config.operation in {"update", "delete"} and config.filter == {}:
        yield "filter", "must not be empty when it is a template"
    if config.operation in {"update", "delete"}:
        yield from _find_null_problems(saved, filters, "filter")


def _find_null_problems(saved: Any, filters: dict[str, Any], path: str) -> Iterator[Problem]:
    """A null that a template yields, as for input without a field, would match all rows without a
    value.
    """
    for name, value in filters.items():
        source = saved.get(name) if isinstance(saved, dict) else saved
        if isinstance(value, dict):
            yield from _find_null_problems(source, value, f"{path}.{name}")
        elif value is None and source is not None:
            message = "must not be null when it is a template; use is_null for rows without a value"
            yield f"{path}.{name}", message


async def _update(where: tuple[Tx, str, str], config: DataTableConfig) -> Outcome:
    values = config.values or {}
    if config.row_id is not None:
        row = await tables.update_row(*where, config.row_id, values)
        return Done({"row": msgspec.to_builtins(row), "count": 1})
    return Done({"count": await tables.update_rows(*where, config.filter or {}, values)})


async def _delete(where: tuple[Tx, str, str], config: DataTableConfig) -> Outcome:
    if config.row_id is not None:
        await tables.delete_row(*where, config.row_id)
        return Done({"count": 1})
    return Done({"count": await tables.delete_rows(*where, config.filter or {})})


async def _query(where: tuple[Tx, str, str], config: DataTableConfig) -> Outcome:
    if config.row_id is not None:
        row = await tables.find_row(*where, config.row_id)
        rows = [] if row is None else [row]
    else:
        filters = config.filter or {}
        try:
            rows = await tables.query_rows(*where, filters, sort=config.sort, limit=config.limit)
        except RowsTooLarge as error:
            return Failed("output_too_large", error.message, is_retryable=False)
    return Done({"rows": msgspec.to_builtins(rows), "count": len(rows)})
