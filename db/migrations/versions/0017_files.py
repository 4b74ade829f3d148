"""Stored files, and how much each tenant stores."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# The last part of a document's key is the id of its file. Profile pictures are not counted: their
# sizes are not known.
_ADD_DOCUMENTS = r"""
INSERT INTO files
    (tenant_id, id, key, purpose, owner_id, filename, size_bytes, mime_type, sha256, created_at)
SELECT tenant_id, substring(file_key FROM '/(fil_[a-z0-9]+)\Z'), file_key, 'document', agent_id,
       name, size_bytes, mime_type, coalesce(sha256, ''), created_at
FROM documents WHERE file_key ~ '/fil_[a-z0-9]+\Z' AND deleted_at IS NULL
ON CONFLICT DO NOTHING
"""
_COUNT_FILES = """
INSERT INTO storage_usage (tenant_id, used_bytes, file_count)
SELECT tenant_id, sum(size_bytes), count(*) FROM files GROUP BY tenant_id
"""


def upgrade() -> None:
    op.create_table(
        "files",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), server_default="upload", nullable=False),
        sa.Column("owner_id", sa.String(), nullable=True),
        sa.Column("filename", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("mime_type", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_files_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
        sa.UniqueConstraint("key", name=op.f("uq_files_key")),
    )
    _create_indexes()
    op.create_table(
        "storage_usage",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("used_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("file_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_storage_usage_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_storage_usage")),
    )
    # Most tenants with many files have many of one purpose: estimated totals must not take both for
    # independent.
    op.execute("CREATE STATISTICS files_purposes (mcv) ON tenant_id, purpose FROM files")
    op.execute(_ADD_DOCUMENTS)
    op.execute(_COUNT_FILES)


def _create_indexes() -> None:
    op.create_index(
        "ix_files_tenant_id_purpose", "files", ["tenant_id", "purpose", "created_at", "id"]
    )
    is_listed = sa.text("purpose IN ('upload', 'form')")
    for name in ("created_at", "filename", "size_bytes", "mime_type"):
        columns = ["tenant_id", name, "id"]
        op.create_index(f"ix_files_listed_{name}", "files", columns, postgresql_where=is_listed)
    op.create_index(
        "ix_files_listed_type_created_at",
        "files",
        ["tenant_id", "mime_type", "created_at", "id"],
        postgresql_where=is_listed,
    )
    op.create_index("ix_files_listed", "files", ["created_at", "id"], postgresql_where=is_listed)
    op.create_index(
        "ix_files_owner_id",
        "files",
        ["owner_id"],
        postgresql_where=sa.text("owner_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_table("storage_usage")
    op.drop_table("files")
