"""Sources of documents: addresses that documents are kept equal to."""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# The driver takes one statement at a time. The body of a function has semicolons, too.
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;$])+;", re.DOTALL)
_TRIGGERS = """
CREATE OR REPLACE FUNCTION count_delete_source_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'knowledge', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.url) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_delete_source_entries AFTER DELETE ON source_entries
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_delete_source_entries();
CREATE OR REPLACE FUNCTION count_insert_source_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'knowledge', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.url) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_insert_source_entries AFTER INSERT ON source_entries
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_insert_source_entries();
"""
_INDEXES = (
    ("ix_documents_source_id", ["source_id", "source_url"], "source_id IS NOT NULL"),
    ("ix_documents_with_address", ["tenant_id", "agent_id"], "source_url IS NOT NULL"),
)


def upgrade() -> None:
    op.create_table(
        "document_sources",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=True),
        sa.Column("schedule", sa.String(), nullable=False),
        sa.Column("apply", sa.String(), nullable=False),
        sa.Column("max_documents", sa.Integer(), nullable=False),
        sa.Column("include", sa.ARRAY(sa.String()), nullable=False),
        sa.Column("exclude", sa.ARRAY(sa.String()), nullable=False),
        sa.Column("document", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("failed_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("work_id", sa.String(), nullable=True),
        sa.Column("sync_no", sa.Integer(), server_default="0", nullable=False),
        sa.Column("completed_no", sa.Integer(), server_default="0", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_synced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("next_sync_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("wait_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("added_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("changed_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("removed_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("left_out_count", sa.Integer(), server_default="0", nullable=False),
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
            ["agent_id"],
            ["agents.id"],
            name=op.f("fk_document_sources_agent_id_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_document_sources_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document_sources")),
        if_not_exists=True,
    )
    op.create_index(
        "ix_document_sources_agent_id",
        "document_sources",
        ["agent_id", "created_at", "id"],
        if_not_exists=True,
    )
    op.create_index(
        "ix_document_sources_next_sync_at",
        "document_sources",
        ["next_sync_at"],
        postgresql_where=sa.text("next_sync_at IS NOT NULL"),
        if_not_exists=True,
    )
    op.create_index(
        "ix_document_sources_tenant_id",
        "document_sources",
        ["tenant_id"],
        unique=False,
        if_not_exists=True,
    )
    op.create_table(
        "source_entries",
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("seen_no", sa.Integer(), server_default="0", nullable=False),
        sa.Column("gone_no", sa.Integer(), server_default="0", nullable=False),
        sa.Column("etag", sa.String(), nullable=True),
        sa.Column("last_modified", sa.String(), nullable=True),
        sa.Column("sha256", sa.String(), nullable=True),
        sa.Column("text_sha256", sa.String(), nullable=True),
        sa.Column("change", sa.String(), nullable=True),
        sa.Column("is_discarded", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("file_key", sa.String(), nullable=True),
        sa.Column("found_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["document_sources.id"],
            name=op.f("fk_source_entries_source_id_document_sources"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_source_entries_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_entries")),
        if_not_exists=True,
    )
    op.create_index(
        "ix_source_entries_changes",
        "source_entries",
        ["source_id", "id"],
        postgresql_where=sa.text("change IS NOT NULL AND NOT is_discarded"),
        if_not_exists=True,
    )
    op.create_index(
        "ix_source_entries_tenant_id", "source_entries", ["tenant_id"], if_not_exists=True
    )
    op.create_index(
        "uq_source_entries_url",
        "source_entries",
        ["source_id", "url"],
        unique=True,
        if_not_exists=True,
    )
    for statement in _STATEMENT.findall(_TRIGGERS):
        op.execute(statement)
    # All its values are NULL, so that Postgres reads none of them.
    op.execute(
        "ALTER TABLE documents ADD COLUMN IF NOT EXISTS source_id varchar"
        " CONSTRAINT fk_documents_source_id_document_sources"
        " REFERENCES document_sources (id) ON DELETE SET NULL"
    )
    op.add_column("documents", sa.Column("source_url", sa.String()), if_not_exists=True)
    # Outside of a transaction: documents may be many, and are written to meanwhile.
    with op.get_context().autocommit_block():
        for name, columns, condition in _INDEXES:
            # One that an earlier attempt left unfinished.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.create_index(
                name,
                "documents",
                columns,
                postgresql_where=sa.text(condition),
                postgresql_concurrently=True,
            )


def downgrade() -> None:
    for name, _, condition in _INDEXES:
        op.drop_index(name, "documents", postgresql_where=sa.text(condition))
    op.drop_column("documents", "source_url")
    op.drop_column("documents", "source_id")
    op.drop_table("source_entries")
    op.drop_table("document_sources")
    for change in ("insert", "delete"):
        op.execute(f"DROP FUNCTION count_{change}_source_entries()")
