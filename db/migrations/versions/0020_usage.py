"""Sums of usage by day, and counts of requests and executions by hour and day.

Usage and tool executions of earlier days are summed up here. Requests were not counted before.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_SUM_DAYS = """
INSERT INTO usage_days (tenant_id, agent_id, model, day, prompt_tokens, completion_tokens, cost_usd,
                        conversations)
SELECT tenant_id, agent_id, model, (hour AT TIME ZONE 'UTC')::date, sum(prompt_tokens),
       sum(completion_tokens), sum(cost_usd), sum(conversations)
FROM usage_hours GROUP BY 1, 2, 3, 4
"""
_COUNT_HOURS = """
INSERT INTO usage_count_hours (tenant_id, kind, agent_id, hour, amount)
SELECT tenant_id, 'tool_executions', coalesce(agent_id, ''),
       date_trunc('hour', finished_at, 'UTC'), count(*)
FROM tool_executions WHERE finished_at > now() - interval '3 days' GROUP BY 1, 3, 4
"""
_COUNT_DAYS = """
INSERT INTO usage_count_days (tenant_id, kind, agent_id, day, amount)
SELECT tenant_id, 'tool_executions', coalesce(agent_id, ''),
       (finished_at AT TIME ZONE 'UTC')::date, count(*)
FROM tool_executions WHERE finished_at IS NOT NULL GROUP BY 1, 3, 4
"""


def upgrade() -> None:
    _create_days()
    op.create_table(
        "usage_counts",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("kind", "id", name=op.f("pk_usage_counts")),
    )
    op.create_index("ix_usage_counts_tenant_id", "usage_counts", ["tenant_id"])
    _create_sums("usage_count_hours", sa.Column("hour", sa.DateTime(timezone=True), nullable=False))
    op.create_index("ix_usage_count_hours_hour", "usage_count_hours", ["hour"])
    _create_sums("usage_count_days", sa.Column("day", sa.Date(), nullable=False))
    op.create_index("ix_usage_hours_hour", "usage_hours", ["hour"])
    op.create_index("ix_usage_days_day", "usage_days", ["day"])
    op.create_index("ix_usage_count_days_day", "usage_count_days", ["day"])
    # No hour is added to its day twice, and no execution is missed.
    op.execute("LOCK TABLE usage_hours, tool_executions IN SHARE ROW EXCLUSIVE MODE")
    for statement in (_SUM_DAYS, _COUNT_HOURS, _COUNT_DAYS):
        op.execute(statement)


def _create_days() -> None:
    op.create_table(
        "usage_days",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=18, scale=9), nullable=False),
        sa.Column("conversations", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_usage_days_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "day", "agent_id", "model", name=op.f("pk_usage_days")
        ),
    )


def _create_sums(table: str, time: sa.Column[object]) -> None:
    op.create_table(
        table,
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        time,
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f(f"fk_{table}_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", time.name, "kind", "agent_id", name=op.f(f"pk_{table}")
        ),
    )


def downgrade() -> None:
    op.drop_index("ix_usage_hours_hour", "usage_hours")
    for table in ("usage_count_days", "usage_count_hours", "usage_counts", "usage_days"):
        op.drop_table(table)
