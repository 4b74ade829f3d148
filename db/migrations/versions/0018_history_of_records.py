"""The history of records: who changed what, and when."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

# The driver takes one statement at a time. The body of a function has semicolons, too.
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;$])+;", re.DOTALL)
_TRIGGERS = """
CREATE OR REPLACE FUNCTION count_delete_history_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'history', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.changes::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_delete_history_entries AFTER DELETE ON history_entries
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_delete_history_entries();
CREATE OR REPLACE FUNCTION count_insert_history_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'history', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.changes::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_insert_history_entries AFTER INSERT ON history_entries
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_insert_history_entries();
"""


def upgrade() -> None:
    op.create_table(
        "history_entries",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("record_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("actor_id", sa.String(), nullable=True),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("truncated", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_history_entries")),
    )
    op.create_index("ix_history_entries_created_at", "history_entries", ["created_at"])
    op.create_index("ix_history_entries_kind", "history_entries", ["tenant_id", "kind", "id"])
    op.create_index(
        "ix_history_entries_record", "history_entries", ["tenant_id", "kind", "record_id", "id"]
    )
    for statement in _STATEMENT.findall(_TRIGGERS):
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("history_entries")
    for change in ("insert", "delete"):
        op.execute(f"DROP FUNCTION count_{change}_history_entries()")
