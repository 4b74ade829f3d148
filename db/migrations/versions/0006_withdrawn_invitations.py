"""Invitations that were revoked or superseded say so."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("invitations", sa.Column("withdrawn_as", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("invitations", "withdrawn_as")
