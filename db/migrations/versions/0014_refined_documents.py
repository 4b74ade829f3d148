"""The languages and encoders of knowledge bases, and what is to be refined."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_UNREFINED = "refined_count < chunk_count AND deleted_at IS NULL"


def upgrade() -> None:
    names = postgresql.ARRAY(sa.String())
    columns: tuple[sa.Column[Any], ...] = (
        sa.Column("format", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column("languages", names, server_default="{}", nullable=False),
        sa.Column("encoders", names, server_default="{}", nullable=False),
        sa.Column("refine_after", sa.DateTime(timezone=True), nullable=True),
    )
    for column in columns:
        op.add_column("knowledge_bases", column, if_not_exists=True)
    # Outside of a transaction: documents may be many, and are written to meanwhile.
    with op.get_context().autocommit_block():
        # One that an earlier attempt left unfinished.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_documents_unrefined")
        op.create_index(
            "ix_documents_unrefined",
            "documents",
            ["tenant_id", "agent_id"],
            postgresql_where=sa.text(_UNREFINED),
            postgresql_concurrently=True,
        )


def downgrade() -> None:
    op.drop_index("ix_documents_unrefined", "documents", postgresql_where=sa.text(_UNREFINED))
    for name in ("refine_after", "encoders", "languages", "format"):
        op.drop_column("knowledge_bases", name)
