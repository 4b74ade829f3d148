"""The device and the last use of each session, and how long requests lasted."""

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
    op.create_table(
        "request_spans",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request_spans")),
    )
    op.create_index(
        "ix_request_spans_correlation", "request_spans", ["tenant_id", "correlation_id"]
    )
    op.create_index(
        "ix_request_spans_started_at", "request_spans", ["started_at"], postgresql_using="brin"
    )


def downgrade() -> None:
    op.drop_table("request_spans")
    op.drop_column("sessions", "last_seen_at")
    op.drop_column("sessions", "user_agent")
