"""Documents are public or internal."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "documents", sa.Column("visibility", sa.String(), server_default="public", nullable=False)
    )
    op.add_column(
        "documents",
        sa.Column("has_internal_chunks", sa.Boolean(), server_default="false", nullable=False),
    )
    op.create_index(
        "ix_documents_internal",
        "documents",
        ["tenant_id", "agent_id"],
        unique=False,
        postgresql_where=sa.text("visibility = 'internal' OR has_internal_chunks"),
    )


def downgrade() -> None:
    op.drop_index(
        "ix_documents_internal",
        table_name="documents",
        postgresql_where=sa.text("visibility = 'internal' OR has_internal_chunks"),
    )
    op.drop_column("documents", "has_internal_chunks")
    op.drop_column("documents", "visibility")
