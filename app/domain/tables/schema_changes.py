"""Changes of a table's columns: checks all rows, and rewrites them where that is needed.

The caller has locked the table, so that no row is written meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from app.domain.tables import columns as column_model
from app.domain.tables import definitions, queries, schema_queries, values
from app.domain.tables.columns import Column, Table
from app.domain.tables.definitions import ColumnDraft
from app.domain.tables.errors import TableTooLarge
from app.domain.tables.schemas import ChangedColumn
from app.domain.tables.values import WrongValue
from app.kit.errors import Invalid, Problem
from db.models import DataTable
from db.session import Tx

MAX_REWRITTEN_ROWS: Final = 200_000
_BATCH = 2000
_EXAMPLES = 5


class _Plan(msgspec.Struct):
    """What has to be done with the rows."""

    required_checks: list[tuple[int, Column]]
    option_checks: list[tuple[int, Column]]
    unique_checks: list[tuple[int, Column]]
    conversions: list[tuple[int, Column, Column]]
    defaults: list[Column]
    slots: list[Column]
    unique_slots: list[Column]
    dropped_keys: list[str]

    @property
    def must_rewrite(self) -> bool:
        return bool(self.conversions or self.defaults or self.slots or self.unique_slots)


async def apply(tx: Tx, table_row: DataTable, changes: Sequence[ChangedColumn]) -> dict[str, Any]:
    """Changes the rows; returns the fields of the table that differ. Raises Invalid,
    TableTooLarge.
    """
    before = column_model.decode(table_row.columns)
    drafts = definitions.merge_columns(before, changes, table_row.next_key)
    count = await queries.count_rows(tx, table_row.tenant_id, table_row.id)
    is_small = count <= MAX_REWRITTEN_ROWS
    after = definitions.assign_slots(drafts, may_index=is_small)
    table = Table(
        id=table_row.id, tenant_id=table_row.tenant_id, name=table_row.name, columns=after
    )
    if count:
        plan = _plan(drafts, before, after)
        if plan.must_rewrite and not is_small:
            raise TableTooLarge(
                f"This change rewrites all rows, and the table has more than "
                f"{MAX_REWRITTEN_ROWS:,}. Add an optional column without an index instead, or "
                "export the rows and import them into a new table"
            )
        await _run(tx, table, plan, is_small=is_small)
    encoded = queries.encode_columns(after)
    if encoded == table_row.columns:
        return {}
    new = sum(draft.before is None for draft in drafts)
    return {
        "columns": encoded,
        "next_key": table_row.next_key + new,
        "revision": table_row.revision + 1,
    }


def _plan(
    drafts: Sequence[ColumnDraft], before: Sequence[Column], after: Sequence[Column]
) -> _Plan:
    plan = _Plan([], [], [], [], [], [], [], [])
    kept = {column.key for column in after}
    plan.dropped_keys = [column.key for column in before if column.key not in kept]
    for position, (draft, column) in enumerate(zip(drafts, after, strict=True)):
        old = draft.before
        is_retyped = old is not None and old.type != column.type
        if old is not None and is_retyped:
            plan.conversions.append((position, old, column))
        elif old is not None and set(old.options) - set(column.options):
            plan.option_checks.append((position, column))
        is_filled = False
        if column.required and (old is None or not old.required):
            is_filled = column.default is not None
            if is_filled:
                plan.defaults.append(column)
            else:
                plan.required_checks.append((position, column))
        if column.slot is not None and (
            old is None or is_retyped or is_filled or old.slot != column.slot
        ):
            plan.slots.append(column)
        if column.unique_slot is not None and (
            old is None or is_retyped or old.unique_slot != column.unique_slot
        ):
            plan.unique_checks.append((position, column))
            plan.unique_slots.append(column)
    return plan


async def _run(tx: Tx, table: Table, plan: _Plan, *, is_small: bool) -> None:
    for position, old, column in plan.conversions:
        await _convert(tx, table, position, old, column)
    checks: tuple[tuple[Iterable[tuple[int, Column]], Callable[..., Any], str, str], ...] = (
        (
            plan.required_checks,
            schema_queries.find_without_value,
            "required",
            "rows have no value, and the column no default: {}",
        ),
        (
            plan.option_checks,
            schema_queries.find_other_options,
            "options",
            "rows have a removed option: {}",
        ),
        (
            plan.unique_checks,
            schema_queries.find_duplicates,
            "unique",
            "several rows have the same value: {}",
        ),
    )
    problems: list[Problem] = []
    for columns, find, field, message in checks:
        for position, column in columns:
            if row_ids := await find(tx, table, column):
                text = message.format(", ".join(row_ids))
                problems.append((f"columns.{position}.{field}", text))
    Invalid.check(problems)
    if plan.must_rewrite or (plan.dropped_keys and is_small):
        await schema_queries.rewrite(
            tx,
            table,
            slots=plan.slots,
            unique_slots=plan.unique_slots,
            defaults=plan.defaults,
            dropped=plan.dropped_keys,
        )


async def _convert(tx: Tx, table: Table, position: int, old: Column, new: Column) -> None:
    """Converts the values of a column to another type. Raises Invalid with a few rows whose values
    cannot be converted.
    """
    after_id, wrong = "", list[str]()
    while rows := await schema_queries.list_values(tx, table, new, after_id, _BATCH):
        after_id = rows[-1]["id"]
        converted = {}
        for row in rows:
            if row["value"] is None:
                continue
            try:
                converted[row["id"]] = convert_value(old, new, row["value"])
            except WrongValue:
                wrong.append(row["id"])
        if len(wrong) >= _EXAMPLES:
            break
        if not wrong:
            await schema_queries.set_values(tx, table, new, converted)
    if wrong:
        examples = ", ".join(wrong[:_EXAMPLES])
        message = f"values of rows cannot be converted to {new.type}: {examples}"
        raise Invalid.field(f"columns.{position}.type", message)


def convert_value(old: Column, new: Column, value: Any) -> Any:
    """Returns a stored value in the form of another type. Raises WrongValue."""
    if new.type == "json":
        return values.check_value(new, value)
    if old.type == "boolean" and new.type in {"number", "integer"}:
        return int(value)
    if old.type == "datetime" and new.type == "date":
        return value[:10]
    converted = values.parse_text(new, values.format_value(old, value))
    if converted is None:
        raise WrongValue("must not be empty")
    return converted
