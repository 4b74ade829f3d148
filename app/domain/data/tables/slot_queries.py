"""SQL expressions of slots and conditions. Only keys and slots of columns are part of them."""

from typing import Final

from db.lists import Where

from .columns import NO_TEXT, SLOT_CHARS, SLOTS, Column, Table
from .filters import Condition

_NO_VALUE = {True: f"'{NO_TEXT}'::text", False: "'NaN'::float8"}
# Stands for the key of a column in a condition; no SQL of ours contains it otherwise.
KEY: Final = "<key>"
_OPERATORS: Final = {"eq": "=", "ne": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def text_sql(column: Column, values: str) -> str:
    return f"({values}->>'{column.key}')"


def _comparable_sql(column: Column, values: str) -> str:
    text = text_sql(column, values)
    match column.type:
        case "number" | "integer":
            return f"{text}::float8"
        case "boolean":
            return f"{text}::boolean::int::float8"
        case "date":
            return f"({text}::date - date '1970-01-01')::float8"
        case "datetime":
            return f"round(extract(epoch FROM {text}::timestamptz) * 1000)::float8"
    return f'left({text}, {SLOT_CHARS}) COLLATE "C"'


def slot_sql(column: Column, values: str) -> str:
    """Returns what a slot of this column has, never NULL."""
    return f"coalesce({_comparable_sql(column, values)}, {_NO_VALUE[column.is_text]})"


def unique_sql(column: Column, values: str) -> str:
    """Returns what a unique slot has: NULL for a missing value. A long text is hashed, since an
    index entry has a limited size.
    """
    text = (
        text_sql(column, values) if column.is_text else f"{_comparable_sql(column, values)}::text"
    )
    return (
        f"CASE WHEN length({text}) <= {SLOT_CHARS} THEN 'v' || nullif({text}, '') "
        f"ELSE 'h' || encode(sha256(convert_to({text}, 'UTF8')), 'hex') END"
    )


def list_slots(columns: list[Column], values: str) -> dict[str, str]:
    """Returns the expressions of all slots; NULL for those without a column."""
    expressions = dict.fromkeys(SLOTS, "NULL")
    for column in columns:
        if column.slot is not None:
            expressions[column.slot] = slot_sql(column, values)
        if column.unique_slot is not None:
            expressions[column.unique_slot] = unique_sql(column, values)
    return expressions


def assignments_sql(columns: list[Column], values: str) -> str:
    """Returns the assignments of an UPDATE that sets all slots."""
    return ", ".join(f"{slot} = {sql}" for slot, sql in list_slots(columns, values).items())


def key_sql(column: Column) -> str:
    """Returns what rows, aliased `r`, are compared and sorted by; never NULL."""
    return f"r.{column.slot}" if column.slot is not None else slot_sql(column, "r.values")


def condition_sql(where: Where, condition: Condition) -> str:
    """Returns a condition on rows, in which `KEY` stands for what is compared."""
    column, op, operand = condition.column, condition.op, condition.operand
    missing = _NO_VALUE[column.is_text]
    if op == "is_null":
        if column.type == "json":
            return f"{'NOT ' if operand else ''}r.values ? '{column.key}'"
        return f"{KEY} {'=' if operand else '<'} {missing}"
    if op == "contains":
        placeholder = where.bind(operand)
        return f"strpos(lower({text_sql(column, 'r.values')}), lower({placeholder}::text)) > 0"
    if op == "in":
        return _in_sql(where, column, operand)
    sql = _comparison_sql(where, column, op, operand)
    return f"{sql} AND {KEY} < {missing}" if op in {"gt", "gte"} else sql


def by_index(sql: str, column: Column) -> str:
    """Completes a condition, so that it can use the column's index."""
    return sql.replace(KEY, key_sql(column))


def bounds_sql(condition: Condition, placeholder: str) -> str:
    """Returns an equality as two bounds. A plan that sorts by the column then needs its index: it
    takes no order for given, as it does after an equality.
    """
    column = condition.column
    kind, key = "text" if column.is_text else "float8", key_sql(column)
    bound = f"{placeholder}::{kind}" if condition.op == "eq" else _NO_VALUE[column.is_text]
    return f"{key} >= {bound} AND {key} <= {bound}"


def without_index(sql: str, column: Column) -> str:
    """Completes a condition, so that no plan can use an index for it."""
    key = key_sql(column)
    if column.slot is not None:
        key = f"({key} || '')" if column.is_text else f"({key} + 0)"
    return sql.replace(KEY, key)


def _comparison_sql(where: Where, column: Column, op: str, operand: str | float) -> str:
    operator = _OPERATORS[op]
    if not isinstance(operand, str):
        return f"{KEY} {operator} {where.bind(operand)}::float8"
    if len(operand) < SLOT_CHARS:
        return f"{KEY} {operator} {where.bind(operand)}::text"
    # The key has the first characters only.
    start, text = where.bind(operand[:SLOT_CHARS]), where.bind(operand)
    value = f'{text_sql(column, "r.values")} COLLATE "C"'
    if op == "ne":
        return f"NOT ({KEY} = {start}::text AND {value} = {text}::text)"
    key_operator = {"eq": "=", "gt": ">=", "lt": "<="}.get(op, operator)
    return f"({KEY} {key_operator} {start}::text AND {value} {operator} {text}::text)"


def _in_sql(where: Where, column: Column, operands: list[str | float]) -> str:
    """The first argument has the distinct keys."""
    if not column.is_text:
        return f"{KEY} = ANY({where.bind(operands)}::float8[])"
    texts = [str(operand) for operand in operands]
    starts = where.bind(list(dict.fromkeys(text[:SLOT_CHARS] for text in texts)))
    sql = f"{KEY} = ANY({starts}::text[])"
    if all(len(text) < SLOT_CHARS for text in texts):
        return sql
    return f"({sql} AND {text_sql(column, 'r.values')} = ANY({where.bind(texts)}::text[]))"


def search_sql(where: Where, table: Table, text: str) -> str:
    """Returns the condition that a text or select column contains a text, in any case."""
    columns = [column for column in table.columns if column.holds_text]
    if not columns:
        return "false"
    placeholder = f"lower({where.bind(text)}::text)"
    parts = [f"strpos(lower({text_sql(item, 'r.values')}), {placeholder}) > 0" for item in columns]
    return f"({' OR '.join(parts)})"
