"""Approvals have the origin of the question, details, and the way in which they were decided."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("approvals", sa.Column("origin", postgresql.JSON(), nullable=True))
    op.add_column(
        "approvals",
        sa.Column("details", postgresql.JSONB(), server_default="[]", nullable=False),
    )
    op.add_column("approvals", sa.Column("decided_via", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("approvals", "decided_via")
    op.drop_column("approvals", "details")
    op.drop_column("approvals", "origin")
