"""Changes of a table's columns: checks all rows, and rewrites them where that is needed.

The caller has locked the table, so that no row is written meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.kit.errors import Invalid, Problem
from app.kit.value_checks import WrongValue
from db.fast import Row
from db.models import DataTable
from db.session import Tx

from . import columns as column_model
from . import definitions, queries, schema_queries, values
from .columns import Column, Table
from .definitions import ColumnDraft
from .errors import TableTooLarge
from .rows import find_unknown_files
from .schema_queries import Rewrite
from .schemas import ChangedColumn

# Postgres takes 0.1 ms for a row, and on a busy machine several times as long. No other request can
# write rows meanwhile.
MAX_REWRITTEN_ROWS: Final = 25_000
_BATCH = 200
_EXAMPLES = 5
_REPEATED = "several rows have the same value: {}"


class _Conversion(msgspec.Struct, frozen=True):
    """A column whose values get another type. `position` is that of the column in the request."""

    position: int
    old: Column
    new: Column


class _Plan(msgspec.Struct):
    """What has to be checked in the rows, and done with them."""

    required_checks: list[tuple[int, Column]]
    option_checks: list[tuple[int, Column]]
    unique_checks: list[tuple[int, Column]]
    conversions: list[_Conversion]
    changes: Rewrite

    @property
    def must_rewrite(self) -> bool:
        changes = self.changes
        return bool(self.conversions or changes.defaults or changes.slots or changes.unique_slots)


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
    plan = _Plan([], [], [], [], Rewrite([], [], [], []))
    kept, changes = {column.key for column in after}, plan.changes
    changes.dropped_keys = [column.key for column in before if column.key not in kept]
    for position, (draft, column) in enumerate(zip(drafts, after, strict=True)):
        old = draft.before
        is_retyped = old is not None and old.type != column.type
        if old is not None and is_retyped:
            plan.conversions.append(_Conversion(position, old, column))
        elif old is not None and set(old.options) - set(column.options):
            plan.option_checks.append((position, column))
        is_filled = False
        if column.required and (old is None or not old.required):
            is_filled = column.default is not None
            if is_filled:
                changes.defaults.append(column)
            else:
                plan.required_checks.append((position, column))
        if column.slot is not None and (
            old is None or is_retyped or is_filled or old.slot != column.slot
        ):
            changes.slots.append(column)
        if column.unique_slot is not None and (
            old is None or is_retyped or old.unique_slot != column.unique_slot
        ):
            changes.unique_slots.append(column)
            if not is_retyped:
                plan.unique_checks.append((position, column))
    return plan


async def _run(tx: Tx, table: Table, plan: _Plan, *, is_small: bool) -> None:
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
            _REPEATED,
        ),
    )
    problems: list[Problem] = []
    for columns, find, field, message in checks:
        for position, column in columns:
            if row_ids := await find(tx, table, column):
                text = message.format(", ".join(row_ids))
                problems.append((f"columns.{position}.{field}", text))
    Invalid.check(problems)
    if plan.must_rewrite or (plan.changes.dropped_keys and is_small):
        await schema_queries.clear_unique_slots(tx, table, plan.changes.unique_slots)
        await _rewrite(tx, table, plan)


async def _rewrite(tx: Tx, table: Table, plan: _Plan) -> None:
    """Writes every row once, in batches. Raises Invalid with a few rows whose values cannot be
    converted, or are no longer unique.
    """
    converters = [_Converter(conversion) for conversion in plan.conversions]
    columns, after_id = [conversion.new for conversion in plan.conversions], ""
    while rows := await schema_queries.list_values(tx, table, columns, after_id, _BATCH):
        after_id = rows[-1]["id"]
        values: dict[str, dict[str, Any]] = {row["id"]: {} for row in rows}
        for converter in converters:
            converter.convert(rows, values)
            await converter.check_files(tx, table, values)
        if any(len(converter.wrong_ids) >= _EXAMPLES for converter in converters):
            break
        if not any(converter.wrong_ids for converter in converters):
            await schema_queries.rewrite(tx, table, plan.changes, values)
    Invalid.check(problem for converter in converters for problem in converter.list_problems())


class _Converter:
    """Converts the values of one column, and remembers rows that contradict."""

    def __init__(self, conversion: _Conversion) -> None:
        self._conversion = conversion
        self._known: set[Any] = set()
        self._unconverted: list[str] = []
        self._repeated: list[str] = []

    @property
    def wrong_ids(self) -> list[str]:
        return self._unconverted or self._repeated

    def convert(self, rows: Iterable[Row], values: Mapping[str, dict[str, Any]]) -> None:
        """Adds the values to those of their rows."""
        new = self._conversion.new
        for row in rows:
            if row[new.key] is None:
                continue
            try:
                value = convert_value(self._conversion.old, new, row[new.key])
            except WrongValue:
                self._unconverted.append(row["id"])
                continue
            values[row["id"]][new.key] = value
            if new.unique and value in self._known:
                self._repeated.append(row["id"])
            elif new.unique:
                self._known.add(value)

    async def check_files(self, tx: Tx, table: Table, values: Mapping[str, dict[str, Any]]) -> None:
        """A text may be the id of any file, also of another tenant."""
        new = self._conversion.new
        if new.type == "file":
            ids = {row_id: row[new.key] for row_id, row in values.items() if new.key in row}
            unknown = await find_unknown_files(tx, table, list(ids.values()))
            self._unconverted += [row_id for row_id, file_id in ids.items() if file_id in unknown]

    def list_problems(self) -> Iterator[Problem]:
        path = f"columns.{self._conversion.position}"
        if self._unconverted:
            examples = ", ".join(self._unconverted[:_EXAMPLES])
            type_ = self._conversion.new.type
            yield f"{path}.type", f"values of rows cannot be converted to {type_}: {examples}"
        elif self._repeated:
            yield f"{path}.unique", _REPEATED.format(", ".join(self._repeated[:_EXAMPLES]))


def convert_value(old: Column, new: Column, value: Any) -> Any:
    """Returns a stored value in the form of another type. Raises WrongValue."""
    if new.type == "json":
        return values.check_value(new, value)
    if old.type == "boolean" and new.holds_number:
        return int(value)
    if old.type == "datetime" and new.type == "date":
        return value[:10]
    converted = values.parse_text(new, values.format_value(old, value))
    if converted is None:
        raise WrongValue("must not be empty")
    return converted
