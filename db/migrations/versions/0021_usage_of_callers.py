"""Usage of callers: users, service keys and embed keys. Days count turns."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_COUNT_TURNS = """
UPDATE usage_days d SET turns = s.turns
FROM (SELECT tenant_id, (hour AT TIME ZONE 'UTC')::date AS day, agent_id, model,
             sum(turns) AS turns
      FROM usage_hours GROUP BY 1, 2, 3, 4) s
WHERE d.tenant_id = s.tenant_id AND d.day = s.day AND d.agent_id = s.agent_id
  AND d.model = s.model AND s.turns > 0
"""


def _add_up(table: str, unit: str, value: str, condition: str) -> str:
    """Rows that are not added up yet are added by the next roll-up. Embed keys were not stored."""
    return f"""
INSERT INTO {table} (tenant_id, {unit}, agent_id, caller_id, source, prompt_tokens,
                     completion_tokens, cost_usd, turns, conversations, requests)
SELECT u.tenant_id, {value}, u.agent_id, coalesce(u.user_id, ''), u.source, sum(u.prompt_tokens),
       sum(u.completion_tokens), sum(u.cost_usd), sum(u.turns), sum(u.conversations), 0
FROM usage u JOIN tenants t ON t.id = u.tenant_id
WHERE u.rolled AND {condition} GROUP BY 1, 2, 3, 4, 5
"""


def upgrade() -> None:
    op.create_table(
        "usage_caller_days",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("caller_id", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=18, scale=9), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("conversations", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_usage_caller_days_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "day", "agent_id", "caller_id", "source", name=op.f("pk_usage_caller_days")
        ),
    )
    op.create_index("ix_usage_caller_days_day", "usage_caller_days", ["day"], unique=False)
    op.create_table(
        "usage_caller_hours",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("caller_id", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=18, scale=9), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("conversations", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_usage_caller_hours_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "hour",
            "agent_id",
            "caller_id",
            "source",
            name=op.f("pk_usage_caller_hours"),
        ),
    )
    op.create_index("ix_usage_caller_hours_hour", "usage_caller_hours", ["hour"], unique=False)
    op.create_table(
        "usage_names",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_usage_names_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_usage_names")),
    )
    op.add_column("usage", sa.Column("caller_id", sa.String(), nullable=True))
    op.add_column(
        "usage_days", sa.Column("turns", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.execute(_COUNT_TURNS)
    day = "(u.created_at AT TIME ZONE 'UTC')::date"
    op.execute(_add_up("usage_caller_days", "day", day, "true"))
    hour, recent = "date_trunc('hour', u.created_at, 'UTC')", "now() - interval '33 days'"
    op.execute(_add_up("usage_caller_hours", "hour", hour, f"u.created_at > {recent}"))


def downgrade() -> None:
    op.drop_column("usage_days", "turns")
    op.drop_column("usage", "caller_id")
    op.drop_table("usage_names")
    op.drop_index("ix_usage_caller_hours_hour", table_name="usage_caller_hours")
    op.drop_table("usage_caller_hours")
    op.drop_index("ix_usage_caller_days_day", table_name="usage_caller_days")
    op.drop_table("usage_caller_days")
