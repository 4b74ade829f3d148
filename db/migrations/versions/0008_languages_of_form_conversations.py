"""Conversations with forms have a language."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "form_conversations",
        sa.Column("language", sa.String(), server_default="en", nullable=False),
    )


def downgrade() -> None:
    op.drop_column("form_conversations", "language")
