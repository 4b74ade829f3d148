from typing import Final

from app.domain.area import Area, AreaJob, PeriodicTask
from app.security.permissions import DEVELOPERS, VIEWERS, Permission
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import CountedTable, UncountedTable

from . import imports
from .events import (
    DataTableCreated,
    DataTableDeleted,
    DataTableImported,
    DataTableUpdated,
    RowCreated,
    RowDeleted,
    RowUpdated,
)
from .jobs import import_rows, on_dead_import

# Rows are removed before their table.
_DELETED_TABLES = """
(SELECT id FROM data_tables WHERE deleted_at < now() - interval '1 minute'
 ORDER BY deleted_at LIMIT 20) d
"""

AREA: Final = Area(
    name="tables",
    events=(
        DataTableCreated,
        DataTableUpdated,
        DataTableDeleted,
        RowCreated,
        RowUpdated,
        RowDeleted,
        DataTableImported,
    ),
    permissions=(
        Permission("data_tables:read", "Read data tables", VIEWERS),
        Permission(
            "data_tables:write", "Create, change and delete data tables and rows", DEVELOPERS
        ),
    ),
    jobs=(
        AreaJob(
            imports.IMPORT,
            import_rows,
            "Import rows into a data table",
            on_dead=on_dead_import,
            instead="Upload the file again",
        ),
    ),
    periodic_tasks=(PeriodicTask(600.0, imports.delete_old_files),),
    retention=(
        RetentionRule(
            "data_rows",
            "t.table_id = d.id",
            order_by="t.id",
            per=_DELETED_TABLES,
        ),
        RetentionRule(
            "data_tables",
            "t.deleted_at < now() - interval '1 minute' "
            "AND NOT EXISTS (SELECT 1 FROM data_rows r WHERE r.table_id = t.id)",
            order_by="t.deleted_at",
            batch=CASCADE_BATCH,
        ),
        RetentionRule(
            "data_imports",
            "t.created_at < now() - interval '90 days'",
            order_by="t.created_at",
            batch=CASCADE_BATCH,
        ),
    ),
    tables=(
        CountedTable(
            "data_rows",
            "tables",
            "octet_length(t.values::text)",
            changes="OLD.values IS DISTINCT FROM NEW.values",
        ),
        UncountedTable("data_tables", "at most 500 of a tenant"),
        UncountedTable("data_table_counts", "a few numbers for each table"),
        UncountedTable("data_imports", "small, deleted after 90 days"),
        UncountedTable("data_import_errors", "at most 10,000 of an import, deleted with it"),
    ),
)
