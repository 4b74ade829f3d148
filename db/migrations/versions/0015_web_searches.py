"""The web searches of agents, for traces."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "web_searches",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("result_count", sa.Integer(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_web_searches")),
    )
    op.create_index("ix_web_searches_correlation", "web_searches", ["tenant_id", "correlation_id"])
    op.create_index("ix_web_searches_started_at", "web_searches", ["started_at"])


def downgrade() -> None:
    op.drop_table("web_searches")
