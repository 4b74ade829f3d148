"""How far the reading of a document is."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("stage", sa.String(), nullable=True))
    op.add_column("documents", sa.Column("stage_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("documents", sa.Column("passage_count", sa.Integer(), nullable=True))
    op.add_column(
        "documents", sa.Column("embedded_count", sa.Integer(), server_default="0", nullable=False)
    )


def downgrade() -> None:
    op.drop_column("documents", "embedded_count")
    op.drop_column("documents", "passage_count")
    op.drop_column("documents", "stage_at")
    op.drop_column("documents", "stage")
