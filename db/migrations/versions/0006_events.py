"""Subscriptions, webhooks both ways, deliveries; a log that is found by time, and lanes of work."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event_subscriptions",
        sa.Column("event_type", sa.String(), nullable=False),
        sa.Column("action_type", sa.String(), nullable=False),
        sa.Column("action_config", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "filters", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("trigger_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_triggered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_event_subscriptions_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_subscriptions")),
    )
    op.create_index(
        "ix_event_subscriptions_active",
        "event_subscriptions",
        ["tenant_id", "event_type"],
        unique=False,
        postgresql_where=sa.text("active"),
    )
    op.create_index(
        "ix_event_subscriptions_tenant_id_created_at",
        "event_subscriptions",
        ["tenant_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "incoming_webhooks",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=True),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("scheme", sa.String(), nullable=True),
        sa.Column("header", sa.String(), nullable=True),
        sa.Column("secret", sa.LargeBinary(), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_incoming_webhooks_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incoming_webhooks")),
        sa.UniqueConstraint("slug", name=op.f("uq_incoming_webhooks_slug")),
    )
    op.create_index(
        "ix_incoming_webhooks_tenant_id_created_at",
        "incoming_webhooks",
        ["tenant_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "incoming_payloads",
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("headers", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("source_ip", sa.String(), nullable=False),
        sa.Column("workflow_execution_id", sa.String(), nullable=True),
        sa.Column("replay_of", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_incoming_payloads_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["incoming_webhooks.id"],
            name=op.f("fk_incoming_payloads_webhook_id_incoming_webhooks"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incoming_payloads")),
    )
    op.create_index(
        "ix_incoming_payloads_created_at",
        "incoming_payloads",
        ["created_at"],
        unique=False,
        postgresql_using="brin",
    )
    op.create_index(
        "ix_incoming_payloads_webhook_id",
        "incoming_payloads",
        ["webhook_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "webhooks",
        sa.Column("subscription_id", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("events", sa.ARRAY(sa.String()), nullable=False),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("description", sa.String(), server_default="", nullable=False),
        sa.Column("keys", sa.LargeBinary(), nullable=False),
        sa.Column("previous_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_reason", sa.String(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["subscription_id"],
            ["event_subscriptions.id"],
            name=op.f("fk_webhooks_subscription_id_event_subscriptions"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_webhooks_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("subscription_id", name=op.f("uq_webhooks_subscription_id")),
    )
    op.create_index(
        "ix_webhooks_active",
        "webhooks",
        ["tenant_id"],
        unique=False,
        postgresql_where=sa.text("active AND subscription_id IS NULL"),
    )
    op.create_index(
        "ix_webhooks_tenant_id_created_at",
        "webhooks",
        ["tenant_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "deliveries",
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("event_type", sa.String(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("response_code", sa.Integer(), nullable=True),
        sa.Column("response_time_ms", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("work_id", sa.String(), nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["event_id"],
            ["event_log.id"],
            name=op.f("fk_deliveries_event_id_event_log"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.id"],
            name=op.f("fk_deliveries_webhook_id_webhooks"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("event_id", "webhook_id", name="uq_deliveries_event_id_webhook_id"),
    )
    op.create_index(
        "ix_deliveries_correlation_id", "deliveries", ["tenant_id", "correlation_id"], unique=False
    )
    op.create_index(
        "ix_deliveries_created_at",
        "deliveries",
        ["created_at"],
        unique=False,
        postgresql_using="brin",
    )
    op.create_index(
        "ix_deliveries_status",
        "deliveries",
        ["webhook_id", "status", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "delivery_attempts",
        sa.Column("delivery_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("response_code", sa.Integer(), nullable=True),
        sa.Column("response_time_ms", sa.Integer(), nullable=False),
        sa.Column("response_body", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["deliveries.id"],
            name=op.f("fk_delivery_attempts_delivery_id_deliveries"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("delivery_id", "number", name=op.f("pk_delivery_attempts")),
    )
    op.add_column(
        "event_log", sa.Column("depth", sa.SmallInteger(), server_default="0", nullable=False)
    )
    op.add_column(
        "event_log", sa.Column("test", sa.Boolean(), server_default="false", nullable=False)
    )
    op.add_column("event_log", sa.Column("root_id", sa.String(), nullable=True))
    op.add_column(
        "event_log", sa.Column("offspring", sa.Integer(), server_default="0", nullable=False)
    )
    op.drop_index("ix_event_log_said", table_name="event_log")
    op.create_index(
        "ix_event_log_said",
        "event_log",
        [sa.literal_column("(data->>'agent_id')"), "created_at"],
        unique=False,
        postgresql_where=sa.text(
            "type IN ('agent.chat.message', 'agent.chat.completed') AND NOT test"
        ),
    )
    op.drop_index(op.f("ix_event_log_correlation_id"), table_name="event_log")
    op.drop_index(op.f("ix_event_log_tenant_id"), table_name="event_log")
    op.drop_index(op.f("ix_event_log_tenant_id_type"), table_name="event_log")
    op.create_index(
        "ix_event_log_correlation",
        "event_log",
        ["tenant_id", "correlation_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_event_log_time", "event_log", ["tenant_id", "created_at", "id"], unique=False
    )
    op.create_index(
        "ix_event_log_type", "event_log", ["tenant_id", "type", "created_at", "id"], unique=False
    )
    op.create_index(
        "ix_usage_correlation_id", "usage", ["tenant_id", "correlation_id"], unique=False
    )
    op.add_column("work", sa.Column("lane", sa.String(), nullable=True))
    op.create_index(
        "ix_work_lane",
        "work",
        ["lane", "run_at"],
        unique=False,
        postgresql_where=sa.text("lane IS NOT NULL AND state IN ('pending', 'leased')"),
    )


def downgrade() -> None:
    op.execute(
        "DELETE FROM work WHERE kind IN ('webhooks.deliver', 'events.fan_out', 'events.act')"
    )
    op.drop_index(
        "ix_work_lane",
        table_name="work",
        postgresql_where=sa.text("lane IS NOT NULL AND state IN ('pending', 'leased')"),
    )
    op.drop_column("work", "lane")
    op.drop_index("ix_usage_correlation_id", table_name="usage")
    op.drop_index("ix_event_log_type", table_name="event_log")
    op.drop_index("ix_event_log_time", table_name="event_log")
    op.drop_index("ix_event_log_correlation", table_name="event_log")
    op.create_index(
        op.f("ix_event_log_tenant_id_type"), "event_log", ["tenant_id", "type", "id"], unique=False
    )
    op.create_index(op.f("ix_event_log_tenant_id"), "event_log", ["tenant_id", "id"], unique=False)
    op.create_index(
        op.f("ix_event_log_correlation_id"), "event_log", ["correlation_id", "id"], unique=False
    )
    op.drop_index("ix_event_log_said", table_name="event_log")
    op.create_index(
        "ix_event_log_said",
        "event_log",
        [sa.literal_column("(data->>'agent_id')"), "created_at"],
        unique=False,
        postgresql_where=sa.text("type IN ('agent.chat.message', 'agent.chat.completed')"),
    )
    op.drop_column("event_log", "offspring")
    op.drop_column("event_log", "root_id")
    op.drop_column("event_log", "test")
    op.drop_column("event_log", "depth")
    op.drop_table("delivery_attempts")
    op.drop_index("ix_deliveries_status", table_name="deliveries")
    op.drop_index("ix_deliveries_created_at", table_name="deliveries", postgresql_using="brin")
    op.drop_index("ix_deliveries_correlation_id", table_name="deliveries")
    op.drop_table("deliveries")
    op.drop_index("ix_webhooks_tenant_id_created_at", table_name="webhooks")
    op.drop_index(
        "ix_webhooks_active",
        table_name="webhooks",
        postgresql_where=sa.text("active AND subscription_id IS NULL"),
    )
    op.drop_table("webhooks")
    op.drop_index("ix_incoming_payloads_webhook_id", table_name="incoming_payloads")
    op.drop_index(
        "ix_incoming_payloads_created_at", table_name="incoming_payloads", postgresql_using="brin"
    )
    op.drop_table("incoming_payloads")
    op.drop_index("ix_incoming_webhooks_tenant_id_created_at", table_name="incoming_webhooks")
    op.drop_table("incoming_webhooks")
    op.drop_index("ix_event_subscriptions_tenant_id_created_at", table_name="event_subscriptions")
    op.drop_index(
        "ix_event_subscriptions_active",
        table_name="event_subscriptions",
        postgresql_where=sa.text("active"),
    )
    op.drop_table("event_subscriptions")
