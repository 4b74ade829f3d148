"""What a user sees of a session: the device that signed in, and when it was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("user_agent", sa.String(), nullable=True))
    op.add_column(
        "sessions",
        sa.Column(
            "last_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
    )
    # The time of the last refresh is the best that is known of older sessions.
    op.execute("UPDATE sessions SET last_seen_at = updated_at")


def downgrade() -> None:
    op.drop_column("sessions", "last_seen_at")
    op.drop_column("sessions", "user_agent")
