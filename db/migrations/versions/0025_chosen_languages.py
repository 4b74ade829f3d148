"""The language of a user is null until the user chooses one."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column(
        "users", "language", existing_type=sa.String(), nullable=True, server_default=None
    )
    # English was the default, so that nobody knows whether it was chosen.
    op.execute("UPDATE users SET language = NULL WHERE language = 'en'")


def downgrade() -> None:
    op.execute("UPDATE users SET language = 'en' WHERE language IS NULL")
    op.alter_column(
        "users", "language", existing_type=sa.String(), nullable=False, server_default="en"
    )
