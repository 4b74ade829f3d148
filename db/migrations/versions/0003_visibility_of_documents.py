"""Documents are public or internal."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in (
        sa.Column("visibility", sa.String(), server_default="public", nullable=False),
        sa.Column("has_internal_chunks", sa.Boolean(), server_default="false", nullable=False),
    ):
        # They are committed before the index is built, which may fail and be tried again.
        op.add_column("documents", column, if_not_exists=True)
    # Outside of a transaction: documents may be many, and are written to meanwhile.
    with op.get_context().autocommit_block():
        # One that an earlier attempt left unfinished.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_documents_internal")
        op.create_index(
            "ix_documents_internal",
            "documents",
            ["tenant_id", "agent_id"],
            postgresql_where=sa.text("visibility = 'internal' OR has_internal_chunks"),
            postgresql_concurrently=True,
        )


def downgrade() -> None:
    op.drop_index(
        "ix_documents_internal",
        table_name="documents",
        postgresql_where=sa.text("visibility = 'internal' OR has_internal_chunks"),
    )
    op.drop_column("documents", "has_internal_chunks")
    op.drop_column("documents", "visibility")
