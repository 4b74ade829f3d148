"""The triggers that count rows toward the quota, as declared and as a database has them."""

import re
from typing import NamedTuple

import asyncpg

from app.areas import AREAS
from db.storage_quota import PLATFORM_TABLES, CountedTable, TableQuota

_LIST = """
SELECT t.tgname AS name, pg_get_triggerdef(t.oid) AS definition, p.prosrc AS body
FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND p.prosrc LIKE '%storage_changes%'
"""


class Trigger(NamedTuple):
    definition: str
    # Of its function, in one line.
    body: str


def list_tables() -> list[TableQuota]:
    return [*PLATFORM_TABLES, *(table for area in AREAS for table in area.tables)]


def list_counted() -> list[CountedTable]:
    return [table for table in list_tables() if isinstance(table, CountedTable)]


def build_triggers(counted: CountedTable) -> dict[str, str]:
    """Returns the statements that a migration needs, by the name of trigger and function."""
    table = counted.table
    triggers = {f"count_delete_{table}": _build_for_statement(counted, "DELETE")}
    if not counted.from_end:
        triggers[f"count_insert_{table}"] = _build_for_statement(counted, "INSERT")
    if counted.update_condition:
        triggers[f"count_update_{table}"] = _build_for_update(counted)
    return triggers


def _build_for_statement(counted: CountedTable, operation: str) -> str:
    name = f"count_{operation.lower()}_{counted.table}"
    sign, rows = ("-", "OLD TABLE") if operation == "DELETE" else ("", "NEW TABLE")
    return f"""
    CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        SELECT tenant_id, '{counted.kind}', {sign}sum(bytes) FROM (
            SELECT tenant_id, {counted.size} AS bytes FROM changed t
        ) counted
        GROUP BY tenant_id HAVING sum(bytes) > 0;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER {name} AFTER {operation} ON {counted.table}
    REFERENCING {rows} AS changed FOR EACH STATEMENT EXECUTE FUNCTION {name}();
    """


def _build_for_update(counted: CountedTable) -> str:
    name = f"count_update_{counted.table}"
    before, after = (re.sub(r"\bt\.", f"{row}.", counted.size) for row in ("OLD", "NEW"))
    return f"""
    CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE change bigint := ({after}) - ({before});
    BEGIN
        IF change <> 0 THEN
            INSERT INTO storage_changes (tenant_id, kind, bytes)
            VALUES (NEW.tenant_id, '{counted.kind}', change);
        END IF;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER {name} AFTER UPDATE ON {counted.table}
    FOR EACH ROW WHEN ({counted.update_condition}) EXECUTE FUNCTION {name}();
    """


async def read_triggers(connection: asyncpg.Connection) -> dict[str, Trigger]:
    """Returns the triggers that count, by name."""
    return {
        row["name"]: Trigger(row["definition"], " ".join(row["body"].split()))
        for row in await connection.fetch(_LIST)
    }
