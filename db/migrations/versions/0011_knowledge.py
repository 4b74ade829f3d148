"""Documents of agents, the tables of their chunks, and log entries about them."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "documents",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("mime_type", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=True),
        sa.Column("file_key", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("chunk_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("work_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("processed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["agents.id"],
            name=op.f("fk_documents_agent_id_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_documents_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
    )
    op.create_index(
        "ix_documents_tenant_id_agent_id",
        "documents",
        ["tenant_id", "agent_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_documents_deleted",
        "documents",
        ["tenant_id", "agent_id"],
        unique=False,
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "uq_documents_agent_id_name",
        "documents",
        ["agent_id", "name"],
        unique=True,
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "knowledge_bases",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("embedding_model", sa.String(), nullable=False),
        sa.Column("has_removed_chunks", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("maintain_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("writer", sa.String(), nullable=True),
        sa.Column("writer_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["agents.id"],
            name=op.f("fk_knowledge_bases_agent_id_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_knowledge_bases_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_knowledge_bases")),
    )
    op.create_index("ix_knowledge_bases_tenant_id", "knowledge_bases", ["tenant_id"], unique=False)
    op.create_index(
        "ix_knowledge_bases_maintain_at",
        "knowledge_bases",
        ["maintain_at"],
        unique=False,
        postgresql_where=sa.text("maintain_at IS NOT NULL"),
    )
    op.alter_column("conversation_entries", "conversation_id", nullable=True)


def downgrade() -> None:
    op.execute("DELETE FROM conversation_entries WHERE conversation_id IS NULL")
    op.alter_column("conversation_entries", "conversation_id", nullable=False)
    op.drop_table("knowledge_bases")
    op.drop_table("documents")
