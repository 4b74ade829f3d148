"""Drafts of records, and notes of the versions of agents."""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# The driver takes one statement at a time. The body of a function has semicolons, too.
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;$])+;", re.DOTALL)
_TRIGGERS = """
CREATE OR REPLACE FUNCTION count_delete_record_drafts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.body::text) + octet_length(t.base::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_delete_record_drafts AFTER DELETE ON record_drafts
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_delete_record_drafts();
CREATE OR REPLACE FUNCTION count_insert_record_drafts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.body::text) + octet_length(t.base::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_insert_record_drafts AFTER INSERT ON record_drafts
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_insert_record_drafts();
CREATE OR REPLACE FUNCTION count_update_record_drafts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint := (256 + octet_length(NEW.body::text) + octet_length(NEW.base::text))
                       - (256 + octet_length(OLD.body::text) + octet_length(OLD.base::text));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'definitions', change);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_update_record_drafts AFTER UPDATE ON record_drafts
FOR EACH ROW WHEN (OLD.body IS DISTINCT FROM NEW.body)
EXECUTE FUNCTION count_update_record_drafts();
"""


def upgrade() -> None:
    op.create_table(
        "record_drafts",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("record_id", sa.String(), nullable=False),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("base_version", sa.Integer(), nullable=False),
        sa.Column("base", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("saved_by", sa.String(), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_record_drafts_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_record_drafts")),
        sa.UniqueConstraint(
            "tenant_id", "kind", "record_id", name="uq_record_drafts_tenant_id_kind_record_id"
        ),
        if_not_exists=True,
    )
    for statement in _STATEMENT.findall(_TRIGGERS):
        op.execute(statement)
    op.add_column(
        "agent_versions",
        sa.Column("note", sa.String(), server_default="", nullable=False),
        if_not_exists=True,
    )


def downgrade() -> None:
    op.drop_column("agent_versions", "note")
    op.drop_table("record_drafts")
    for change in ("delete", "insert", "update"):
        op.execute(f"DROP FUNCTION IF EXISTS count_{change}_record_drafts()")
