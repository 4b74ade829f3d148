"""Notification channels, messages, deliveries and their log, the notification center, digests."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notification_channels",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("config", sa.LargeBinary(), nullable=False),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("rate_limit_per_minute", sa.Integer(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
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
            name=op.f("fk_notification_channels_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_channels")),
    )
    op.create_index(
        "ix_notification_channels_deleted_at",
        "notification_channels",
        ["deleted_at"],
        unique=False,
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "ix_notification_channels_type",
        "notification_channels",
        ["tenant_id", "type", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "notification_messages",
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("recipients", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("occasion", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("dispatched_to", sa.String(), server_default="", nullable=False),
        sa.Column("team_chat", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("is_mailed", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=True),
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
            name=op.f("fk_notification_messages_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_messages")),
        sa.UniqueConstraint("occasion", "source", name="uq_notification_messages_occasion_source"),
    )
    op.create_index(
        "ix_notification_messages_created_at", "notification_messages", ["created_at"], unique=False
    )
    op.create_index(
        "ix_notification_messages_tenant_id", "notification_messages", ["tenant_id"], unique=False
    )
    op.create_table(
        "notification_channel_days",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("delivered", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("total_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["channel_id"],
            ["notification_channels.id"],
            name=op.f("fk_notification_channel_days_channel_id_notification_channels"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("channel_id", "day", name=op.f("pk_notification_channel_days")),
    )
    op.create_table(
        "notification_deliveries",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("first_id", sa.String(), nullable=False),
        sa.Column("occasion", sa.String(), nullable=False),
        sa.Column("recipient", sa.String(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("throttled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("is_test", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("work_id", sa.String(), nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["channel_id"],
            ["notification_channels.id"],
            name=op.f("fk_notification_deliveries_channel_id_notification_channels"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["notification_messages.id"],
            name=op.f("fk_notification_deliveries_message_id_notification_messages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_deliveries")),
        sa.UniqueConstraint(
            "occasion",
            "channel_id",
            "recipient",
            name="uq_notification_deliveries_occasion_channel_id_recipient",
        ),
    )
    op.create_index(
        "ix_notification_deliveries_channel_id",
        "notification_deliveries",
        ["channel_id", "status"],
        unique=False,
    )
    op.create_index(
        "ix_notification_deliveries_correlation_id",
        "notification_deliveries",
        ["tenant_id", "correlation_id"],
        unique=False,
    )
    op.create_index(
        "ix_notification_deliveries_first_id", "notification_deliveries", ["first_id"], unique=False
    )
    op.create_index(
        "ix_notification_deliveries_message_id",
        "notification_deliveries",
        ["message_id"],
        unique=False,
    )
    op.create_table(
        "notification_digests",
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("channel_type", sa.String(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_notification_digests_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_notification_digests_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_digests")),
    )
    op.create_index(
        "ix_notification_digests_due_at", "notification_digests", ["due_at"], unique=False
    )
    op.create_index(
        "ix_notification_digests_tenant_id", "notification_digests", ["tenant_id"], unique=False
    )
    op.create_index(
        "ix_notification_digests_user_id", "notification_digests", ["user_id"], unique=False
    )
    op.create_index(
        "uq_notification_digests_due",
        "notification_digests",
        ["tenant_id", sa.text("coalesce(user_id, '')"), "type", "channel_type", "due_at"],
        unique=True,
        postgresql_where=sa.text("sent_at IS NULL"),
    )
    op.create_table(
        "notification_preferences",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("preferences", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
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
            ["user_id"],
            ["users.id"],
            name=op.f("fk_notification_preferences_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_notification_preferences")),
    )
    op.create_table(
        "notifications",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("read", sa.Boolean(), server_default="false", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["notification_messages.id"],
            name=op.f("fk_notifications_message_id_notification_messages"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_notifications_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notifications")),
        sa.UniqueConstraint("message_id", "user_id", name="uq_notifications_message_id_user_id"),
    )
    op.create_index(
        "ix_notifications_user_id_created_at",
        "notifications",
        ["user_id", "created_at", "id"],
        unique=False,
        postgresql_include=["tenant_id"],
    )
    op.create_index(
        "ix_notifications_user_id_type",
        "notifications",
        ["user_id", "type", "read", "created_at", "id"],
        unique=False,
        postgresql_include=["tenant_id"],
    )
    op.create_table(
        "notification_digest_items",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("digest_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["digest_id"],
            ["notification_digests.id"],
            name=op.f("fk_notification_digest_items_digest_id_notification_digests"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["notification_messages.id"],
            name=op.f("fk_notification_digest_items_message_id_notification_messages"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "digest_id", "message_id", name=op.f("pk_notification_digest_items")
        ),
    )
    op.create_index(
        "ix_notification_digest_items_message_id",
        "notification_digest_items",
        ["message_id"],
        unique=False,
    )
    op.create_table(
        "notification_log",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("delivery_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("delivery_time_ms", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["notification_deliveries.id"],
            name=op.f("fk_notification_log_delivery_id_notification_deliveries"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_log")),
        sa.UniqueConstraint("delivery_id", "number", name="uq_notification_log_delivery_id_number"),
    )
    op.create_index(
        "ix_notification_log_channel_id",
        "notification_log",
        ["channel_id", "status", "created_at", "id"],
        unique=False,
    )


def downgrade() -> None:
    for table in (
        "notification_digest_items",
        "notification_log",
        "notification_deliveries",
        "notification_channel_days",
        "notifications",
        "notification_digests",
        "notification_preferences",
        "notification_messages",
        "notification_channels",
    ):
        op.drop_table(table)
