"""Rows of a tenant in every table that has a tenant.

The rows are built from the schema. Each text contains a marker, so that a leak is visible in any
response, and a snapshot of all rows shows whether a request changed one of them.
"""

import itertools
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    Column,
    Date,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    select,
)
from sqlalchemy.dialects.postgresql import JSON, insert

from app.services import Services
from db.base import Base
from db.session import ALL_TENANTS

# Short, so that no text of a row has more than the 64 characters that error messages repeat.
MARKER = "of-somebody-else"
_number = itertools.count(1)

Rows = dict[str, dict[str, Any]]
# Tables that a parameter of a path does not name.
_TABLES = {"event_id": ("event_log", "incoming_payloads")}
# Values of a path that are the same in every tenant.
_SHARED_VALUES = {
    "role": ("viewer",),
    "event_type": ("agent.created",),
    "channel_type": ("email",),
    "version": ("1",),
    "other": ("1",),
    "from_version": ("1",),
    "to_version": ("1",),
}
_DEFINITION = '{"nodes": [{"id": "a", "type": "transform"}], "edges": []}'
# Routes of one field find the field of the uploaded file.
_FIELDS = """
(SELECT json_build_array(json_build_object('id', field_id, 'type', 'select', 'label', 'A',
                                           'options', '[{"value": "a", "label": "A"}]'::json))
 FROM form_uploads WHERE tenant_id = $1)"""
_DRAFT_OF_AGENT = """
UPDATE record_drafts d SET record_id = a.id FROM agents a
WHERE d.tenant_id = $1 AND a.tenant_id = $1"""
# The rows have any text in every column; responses have only certain values in these.
VALID_VALUES = (
    "UPDATE approvals SET status = 'pending', origin = NULL, details = '[]' WHERE tenant_id = $1",
    "UPDATE record_drafts SET kind = 'agent', body = '{}', base = '{}' WHERE tenant_id = $1",
    _DRAFT_OF_AGENT,
    "UPDATE sub_agents SET relationship_type = 'direct' WHERE tenant_id = $1",
    "UPDATE conversation_entries SET type = 'message', logged = true WHERE tenant_id = $1",
    "UPDATE conversations SET visitor = NULL WHERE tenant_id = $1",
    "UPDATE saved_views SET is_shared = true WHERE tenant_id = $1",
    "UPDATE chat_jobs SET reply = NULL, error = NULL WHERE tenant_id = $1",
    "UPDATE incoming_payloads SET body = '{}' WHERE tenant_id = $1",
    "UPDATE documents SET stage = 'reading' WHERE tenant_id = $1",
    "UPDATE documents SET status = 'ready', deleted_at = NULL WHERE tenant_id = $1",
    "UPDATE notification_channels SET type = 'email', provider = 'smtp' WHERE tenant_id = $1",
    "UPDATE notification_channels SET deleted_at = NULL WHERE tenant_id = $1",
    "UPDATE notification_log SET status = 'failed' WHERE tenant_id = $1",
    "UPDATE files SET purpose = 'upload' WHERE tenant_id = $1",
    "UPDATE data_tables SET columns = '[]', deleted_at = NULL WHERE tenant_id = $1",
    "UPDATE data_imports SET status = 'failed', mode = 'insert' WHERE tenant_id = $1",
    "UPDATE data_imports SET errors = '[]' WHERE tenant_id = $1",
    "UPDATE workflows SET deleted_at = NULL, status = 'draft', trigger = NULL WHERE tenant_id = $1",
    f"UPDATE workflow_versions SET definition = '{_DEFINITION}' WHERE tenant_id = $1",
    "UPDATE workflow_executions SET status = 'completed', error = NULL WHERE tenant_id = $1",
    "UPDATE workflow_executions SET trigger_type = 'manual' WHERE tenant_id = $1",
    "UPDATE workflow_nodes SET status = 'completed', error = NULL WHERE tenant_id = $1",
    "UPDATE tenants SET limits = '{}' WHERE id = $1",
    "UPDATE forms SET status = 'published', deleted_at = NULL WHERE tenant_id = $1",
    "UPDATE forms SET settings = '{}', branding = '{}' WHERE tenant_id = $1",
    "UPDATE forms SET data_table_config = NULL WHERE tenant_id = $1",
    f"UPDATE form_versions SET fields = {_FIELDS} WHERE tenant_id = $1",
    "UPDATE form_submissions SET status = 'received', errors = '[]' WHERE tenant_id = $1",
    "UPDATE form_submissions SET answered = '1' WHERE tenant_id = $1",
    "UPDATE form_conversations SET status = 'active', data = '{}' WHERE tenant_id = $1",
    "UPDATE history_entries SET kind = 'agent', changes = '[]' WHERE tenant_id = $1",
    "UPDATE form_messages SET role = 'user' WHERE tenant_id = $1",
    "UPDATE work SET state = 'dead' WHERE tenant_id = $1",
)


def list_owned_tables() -> list[Table]:
    """Returns the tables in the order in which rows can be inserted."""
    return [table for table in Base.metadata.sorted_tables if "tenant_id" in table.c]


async def insert_rows(services: Services, tenant_id: str) -> Rows:
    """Inserts one row into every table; returns the rows by table name."""
    rows_by_table: Rows = {"tenants": {"id": tenant_id}}
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        for table in list_owned_tables():
            values = build_row(table, rows_by_table, tenant_id)
            await session.execute(insert(table).values(values))
            rows_by_table[table.name] = values
    return rows_by_table


def build_row(table: Table, rows_by_table: Rows, tenant_id: str) -> dict[str, Any]:
    """Returns the values of a row, which refers to the rows of the tables before."""
    return {
        column.name: _build_value(column, rows_by_table, tenant_id)
        for column in table.c
        if _can_be_set(column, rows_by_table)
    }


def list_values(parameter: str, rows: Rows) -> list[str]:
    """Returns values for a parameter of a path: those that many routes accept, the ids of the
    table that it names and columns of the same name, or else the ids of all rows.
    """
    noun = parameter.removesuffix("_id").rstrip("s")
    values = [*_SHARED_VALUES.get(parameter, ())]
    values += [row["id"] for table, row in rows.items() if table.rstrip("s").endswith(noun)]
    values += [rows[table]["id"] for table in _TABLES.get(parameter, ())]
    values += [
        str(row[parameter]) for row in rows.values() if parameter in row and parameter != "id"
    ]
    return list(dict.fromkeys(values)) or [row["id"] for row in rows.values() if "id" in row]


def _can_be_set(column: Column[Any], rows_by_table: Rows) -> bool:
    """False for a number that the database gives out, and for a reference to a table without a row
    yet, for example to the table itself.
    """
    return column.identity is None and all(
        key.column.table.name in rows_by_table for key in column.foreign_keys
    )


def _build_value(
    column: Column[Any], rows_by_table: Mapping[str, Mapping[str, Any]], tenant_id: str
) -> Any:
    if column.name == "tenant_id":
        return tenant_id
    for key in column.foreign_keys:
        return rows_by_table[key.column.table.name][key.column.name]
    # SQLAlchemy wraps some types.
    match getattr(column.type, "impl_instance", column.type):
        case JSON():
            return {"text": _build_text(column)}
        case ARRAY():
            return []
        case Date():
            return datetime.now(UTC).date()
        case DateTime():
            return datetime.now(UTC) + timedelta(days=1)
        case Boolean():
            return False
        case Integer() | Numeric() | Float():
            return 1
        case LargeBinary():
            return MARKER.encode()
    return _build_text(column)


def _build_text(column: Column[Any]) -> str:
    return f"{column.table.name}__{column.name}-{MARKER}-{next(_number)}"


def find_columns(text: str) -> set[str]:
    """Returns the columns, as `table.column`, whose texts of `insert_rows` are part of a text."""
    return {name.replace("__", ".") for name in re.findall(rf"(\w+)-{MARKER}-\d", text)}


async def read_snapshot(services: Services, tenant_id: str) -> dict[str, list[Any]]:
    """Returns the current rows of the tenant, by table."""
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        contents = {}
        for table in list_owned_tables():
            rows = await session.execute(select(table).where(table.c.tenant_id == tenant_id))
            contents[table.name] = sorted(map(repr, rows.mappings()))
        tenants = Base.metadata.tables["tenants"]
        rows = await session.execute(select(tenants).where(tenants.c.id == tenant_id))
        contents["tenants"] = list(map(repr, rows.mappings()))
    return contents


async def delete_rows(services: Services, tenant_id: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("DELETE FROM work WHERE tenant_id = $1", tenant_id)
        await raw.execute("DELETE FROM tenants WHERE id = $1", tenant_id)
