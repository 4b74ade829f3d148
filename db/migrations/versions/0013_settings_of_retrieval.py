"""How an agent searches its documents, and how far they are refined."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = postgresql.JSONB(astext_type=sa.Text())
    op.add_column("agents", sa.Column("retrieval", json, nullable=True), if_not_exists=True)
    op.add_column(
        "documents", sa.Column("language", sa.String(), nullable=True), if_not_exists=True
    )
    for name in ("refined_count", "asked_count"):
        column = sa.Column(name, sa.Integer(), server_default="0", nullable=False)
        op.add_column("documents", column, if_not_exists=True)


def downgrade() -> None:
    for name in ("asked_count", "refined_count", "language"):
        op.drop_column("documents", name)
    op.drop_column("agents", "retrieval")
