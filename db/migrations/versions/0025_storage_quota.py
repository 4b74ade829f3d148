"""What every tenant stores, counted by triggers, and indexes for retention periods by plan.

Writers of the counted tables wait while their rows are counted for the first time: a few seconds
for a million rows.
"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

# What a row takes besides its content: its header, ids, times and index entries.
_ROW = 256
# The text and the vector of a chunk.
_CHUNK = 2560

# The bytes of a row `{r}`. They are computed from the content when a row is added and when it is
# deleted, so that the same bytes are subtracted: its size on disk differs between the two.
_SIZES = {
    "event_log": ("events", f"{_ROW} + octet_length({{r}}.data::text)"),
    "conversation_entries": (
        "conversations",
        f"{_ROW} + coalesce(octet_length({{r}}.content), 0) + octet_length({{r}}.data::text)",
    ),
    # Jobs and executions count from their end on: while they run, their rows change often.
    "chat_jobs": (
        "conversations",
        (
            f"CASE WHEN {{r}}.finished_at IS NULL THEN 0 ELSE {_ROW}"
            " + octet_length({r}.progress::text) + coalesce(octet_length({r}.reply::text), 0)"
            " + coalesce(octet_length({r}.context::text), 0) END"
        ),
    ),
    "incoming_payloads": (
        "payloads",
        f"{_ROW} + octet_length({{r}}.body) + octet_length({{r}}.headers::text)",
    ),
    # With the row of the delivery.
    "delivery_attempts": (
        "payloads",
        (
            f"{2 * _ROW} + coalesce(octet_length({{r}}.response_body), 0)"
            " + coalesce(octet_length({r}.error), 0) + octet_length({r}.url)"
        ),
    ),
    "tool_executions": (
        "executions",
        (
            f"CASE WHEN {{r}}.finished_at IS NULL THEN 0 ELSE {_ROW}"
            " + octet_length({r}.input::text) + coalesce(octet_length({r}.output::text), 0)"
            " + coalesce(octet_length({r}.error_message), 0) END"
        ),
    ),
    "workflow_executions": (
        "executions",
        (
            f"CASE WHEN {{r}}.finished_at IS NULL THEN 0 ELSE {_ROW} + {{r}}.stored_bytes"
            " + octet_length({r}.input::text) + coalesce(octet_length({r}.output::text), 0) END"
        ),
    ),
    "form_submissions": (
        "forms",
        f"{_ROW} + octet_length({{r}}.data::text) + octet_length({{r}}.custom_metadata::text)",
    ),
    "form_drafts": ("forms", f"{_ROW} + octet_length({{r}}.data::text)"),
    "form_conversations": ("forms", f"{_ROW} + octet_length({{r}}.data::text)"),
    "form_messages": ("forms", f"{_ROW} + octet_length({{r}}.content)"),
    "data_rows": ("tables", f"{_ROW} + octet_length({{r}}.values::text)"),
    "documents": ("knowledge", f"{_ROW} + {_CHUNK} * {{r}}.chunk_count::bigint"),
    "agents": (
        "definitions",
        f"{_ROW} + octet_length({{r}}.system_prompt) + octet_length({{r}}.description)",
    ),
    "agent_versions": ("definitions", f"{_ROW} + octet_length({{r}}.system_prompt)"),
    "tools": (
        "definitions",
        (
            f"{_ROW} + octet_length({{r}}.config::text) + octet_length({{r}}.description)"
            " + coalesce(octet_length({r}.input_schema::text), 0)"
            " + coalesce(octet_length({r}.output_schema::text), 0)"
        ),
    ),
    "workflow_versions": ("definitions", f"{_ROW} + octet_length({{r}}.definition::text)"),
    "form_versions": ("definitions", f"{_ROW} + octet_length({{r}}.fields::text)"),
}
_ENDS = "OLD.finished_at IS NOT NULL OR NEW.finished_at IS NOT NULL"
# The updates that change the bytes of a row.
_UPDATES = {
    "conversation_entries": "OLD.content IS DISTINCT FROM NEW.content"
    " OR OLD.data IS DISTINCT FROM NEW.data",
    "chat_jobs": _ENDS,
    "tool_executions": _ENDS,
    # One that is retried has no end any more.
    "workflow_executions": _ENDS,
    "agents": "OLD.updated_at <> NEW.updated_at",
    "tools": "OLD.updated_at <> NEW.updated_at",
    "form_versions": "OLD.fields::text <> NEW.fields::text",
    "form_drafts": "OLD.data::text <> NEW.data::text",
    "form_conversations": "OLD.data::text <> NEW.data::text",
    "data_rows": "OLD.values IS DISTINCT FROM NEW.values",
    "documents": "OLD.chunk_count <> NEW.chunk_count",
}
_COUNTED_LATER = ("chat_jobs", "tool_executions", "workflow_executions")

# The new index and the old one, which had all tenants in one order.
_INDEXES = (
    ("incoming_payloads", "created_at", None, "ix_incoming_payloads_tenant_id_created_at"),
    ("tool_executions", "executed_at", None, "ix_tool_executions_tenant_id_executed_at"),
    ("workflow_executions", "finished_at", None, "ix_workflow_executions_ended"),
    ("deliveries", "created_at", "status <> 'pending'", "ix_deliveries_tenant_id_created_at"),
    (
        "event_log",
        "created_at",
        "type = 'system.incoming_webhook.received'",
        "ix_event_log_received_by_tenant",
    ),
)
_OLD_INDEXES = {
    "incoming_payloads": "ix_incoming_payloads_created_at",
    "tool_executions": "ix_tool_executions_executed_at",
    "workflow_executions": "ix_workflow_executions_finished_at",
    "deliveries": "ix_deliveries_created_at",
    "event_log": "ix_event_log_received",
}


def upgrade() -> None:
    _create_tables()
    for table, (kind, size) in _SIZES.items():
        op.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
        if table not in _COUNTED_LATER:
            _add_statement_trigger(table, kind, size, "INSERT")
        _add_statement_trigger(table, kind, size, "DELETE")
        if table in _UPDATES:
            _add_update_trigger(table, kind, size)
        op.execute(build_first_count(table))
    for table, column, condition, name in _INDEXES:
        where = sa.text(condition) if condition else None
        op.create_index(name, table, ["tenant_id", column], postgresql_where=where)
        op.drop_index(_OLD_INDEXES[table], table)
    op.create_index(
        "ix_event_log_test", "event_log", ["created_at"], postgresql_where=sa.text("test")
    )


def build_first_count(table: str) -> str:
    kind, size = _SIZES[table]
    return f"""
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, '{kind}', sum({size.format(r="t")}) FROM {table} t GROUP BY tenant_id
    """


def _create_tables() -> None:
    op.add_column(
        "storage_usage",
        sa.Column("other_bytes", sa.BigInteger(), server_default="0", nullable=False),
    )
    op.add_column(
        "storage_usage",
        sa.Column("warned_percent", sa.SmallInteger(), server_default="0", nullable=False),
    )
    op.create_table(
        "storage_kinds",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_storage_kinds_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "kind", name=op.f("pk_storage_kinds")),
    )
    op.create_table(
        "storage_changes",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_storage_changes")),
    )


def _add_statement_trigger(table: str, kind: str, size: str, operation: str) -> None:
    name, sign, rows = f"count_{operation.lower()}_{table}", "", "NEW TABLE"
    if operation == "DELETE":
        sign, rows = "-", "OLD TABLE"
    op.execute(f"""
    CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        SELECT tenant_id, '{kind}', {sign}sum(bytes) FROM (
            SELECT tenant_id, {size.format(r="t")} AS bytes FROM changed t
        ) counted
        GROUP BY tenant_id HAVING sum(bytes) > 0;
        RETURN NULL;
    END $$
    """)
    op.execute(f"""
    CREATE TRIGGER {name} AFTER {operation} ON {table} REFERENCING {rows} AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {name}()
    """)


def _add_update_trigger(table: str, kind: str, size: str) -> None:
    name = f"count_update_{table}"
    op.execute(f"""
    CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE change bigint := ({size.format(r="NEW")}) - ({size.format(r="OLD")});
    BEGIN
        IF change <> 0 THEN
            INSERT INTO storage_changes (tenant_id, kind, bytes)
            VALUES (NEW.tenant_id, '{kind}', change);
        END IF;
        RETURN NULL;
    END $$
    """)
    op.execute(f"""
    CREATE TRIGGER {name} AFTER UPDATE ON {table}
    FOR EACH ROW WHEN ({_UPDATES[table]}) EXECUTE FUNCTION {name}()
    """)


def downgrade() -> None:
    for table in _SIZES:
        for operation in ("insert", "delete", "update"):
            name = f"count_{operation}_{table}"
            op.execute(f"DROP FUNCTION IF EXISTS {name}() CASCADE")
    op.drop_index("ix_event_log_test", "event_log")
    for table, column, condition, name in _INDEXES:
        where = sa.text(condition) if condition else None
        op.create_index(_OLD_INDEXES[table], table, [column], postgresql_where=where)
        op.drop_index(name, table)
    op.drop_table("storage_changes")
    op.drop_table("storage_kinds")
    op.drop_column("storage_usage", "warned_percent")
    op.drop_column("storage_usage", "other_bytes")
