"""Conversations, chat jobs, usage.

Its revision is 0003, which existing databases have; for them 0003_1 counts as applied.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0003_1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "usage",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=18, scale=9), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("conversations", sa.Integer(), nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("response_time_ms", sa.Integer(), nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=True),
        sa.Column("rolled", sa.Boolean(), server_default="false", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("message_id", "model", name=op.f("pk_usage")),
    )
    op.create_index("ix_usage_agent_id", "usage", ["agent_id", "created_at"], unique=False)
    op.create_index(
        "ix_usage_created_at", "usage", ["created_at"], unique=False, postgresql_using="brin"
    )
    op.create_index(
        "ix_usage_not_rolled",
        "usage",
        ["tenant_id", "agent_id"],
        unique=False,
        postgresql_where=sa.text("NOT rolled"),
    )
    op.create_table(
        "usage_hours",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=18, scale=9), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("conversations", sa.BigInteger(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("response_time_ms", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_usage_hours_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("agent_id", "model", "hour", name=op.f("pk_usage_hours")),
    )
    op.create_index("ix_usage_hours_tenant_id", "usage_hours", ["tenant_id", "hour"], unique=False)
    op.create_table(
        "conversations",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("embed_key_id", sa.String(), nullable=True),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("title", sa.String(), server_default="", nullable=False),
        sa.Column("message_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "last_message_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("turn_holder", sa.String(), nullable=True),
        sa.Column("turn_until", sa.DateTime(timezone=True), nullable=True),
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
            ["agent_id"],
            ["agents.id"],
            name=op.f("fk_conversations_agent_id_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["embed_key_id"],
            ["embed_keys.id"],
            name=op.f("fk_conversations_embed_key_id_embed_keys"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_conversations_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_conversations_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations")),
    )
    op.create_index(
        "ix_conversations_agent_id",
        "conversations",
        ["tenant_id", "agent_id", "last_message_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_conversations_embed_key_id",
        "conversations",
        ["embed_key_id"],
        unique=False,
        postgresql_where=sa.text("embed_key_id IS NOT NULL"),
    )
    op.create_index(
        "ix_conversations_idle",
        "conversations",
        ["last_message_at"],
        unique=False,
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index(
        "ix_conversations_user_id",
        "conversations",
        ["user_id"],
        unique=False,
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_table(
        "chat_jobs",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("work_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("context", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "progress", postgresql.JSONB(astext_type=sa.Text()), server_default="[]", nullable=False
        ),
        sa.Column("reply", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("error", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
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
            ["agent_id"],
            ["agents.id"],
            name=op.f("fk_chat_jobs_agent_id_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_chat_jobs_conversation_id_conversations"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_chat_jobs_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_chat_jobs_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_jobs")),
    )
    op.create_index("ix_chat_jobs_agent_id", "chat_jobs", ["tenant_id", "agent_id"], unique=False)
    op.create_index("ix_chat_jobs_conversation_id", "chat_jobs", ["conversation_id"], unique=False)
    op.create_index("ix_chat_jobs_user_id", "chat_jobs", ["user_id"], unique=False)
    op.create_table(
        "conversation_entries",
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=True),
        sa.Column("content", sa.String(), nullable=True),
        sa.Column("status", sa.String(), server_default="complete", nullable=False),
        sa.Column(
            "data", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("logged", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_conversation_entries_conversation_id_conversations"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversation_entries")),
    )
    op.create_index(
        "ix_conversation_entries_agent_id",
        "conversation_entries",
        ["tenant_id", "agent_id", "created_at", "seq"],
        unique=False,
    )
    op.create_index(
        "ix_conversation_entries_conversation_id",
        "conversation_entries",
        ["conversation_id", "seq"],
        unique=False,
    )
    op.create_index(
        "ix_event_log_said",
        "event_log",
        [sa.literal_column("(data->>'agent_id')"), "created_at"],
        unique=False,
        postgresql_where=sa.text("type IN ('agent.chat.message', 'agent.chat.completed')"),
    )
    op.drop_index("ix_event_log_created_at", table_name="event_log")
    op.create_index("ix_event_log_created_at", "event_log", ["created_at"], postgresql_using="brin")
    op.drop_constraint(op.f("fk_event_log_tenant_id_tenants"), "event_log", type_="foreignkey")
    op.add_column("idempotency_keys", sa.Column("holder", sa.String(), nullable=True))
    op.add_column(
        "idempotency_keys", sa.Column("renewed_at", sa.DateTime(timezone=True), nullable=True)
    )


def downgrade() -> None:
    op.drop_index("ix_event_log_created_at", table_name="event_log")
    op.create_index("ix_event_log_created_at", "event_log", ["created_at"])
    op.drop_column("idempotency_keys", "renewed_at")
    op.drop_column("idempotency_keys", "holder")
    op.create_foreign_key(
        op.f("fk_event_log_tenant_id_tenants"),
        "event_log",
        "tenants",
        ["tenant_id"],
        ["id"],
        ondelete="CASCADE",
    )
    op.drop_index(
        "ix_event_log_said",
        table_name="event_log",
        postgresql_where=sa.text("type IN ('agent.chat.message', 'agent.chat.completed')"),
    )
    op.drop_index("ix_conversation_entries_conversation_id", table_name="conversation_entries")
    op.drop_index("ix_conversation_entries_agent_id", table_name="conversation_entries")
    op.drop_table("conversation_entries")
    op.drop_index("ix_chat_jobs_user_id", table_name="chat_jobs")
    op.drop_index("ix_chat_jobs_conversation_id", table_name="chat_jobs")
    op.drop_index("ix_chat_jobs_agent_id", table_name="chat_jobs")
    op.drop_table("chat_jobs")
    op.drop_index(
        "ix_conversations_user_id",
        table_name="conversations",
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_conversations_idle",
        table_name="conversations",
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.drop_index(
        "ix_conversations_embed_key_id",
        table_name="conversations",
        postgresql_where=sa.text("embed_key_id IS NOT NULL"),
    )
    op.drop_index("ix_conversations_agent_id", table_name="conversations")
    op.drop_table("conversations")
    op.drop_index("ix_usage_hours_tenant_id", table_name="usage_hours")
    op.drop_table("usage_hours")
    op.drop_index("ix_usage_not_rolled", table_name="usage", postgresql_where=sa.text("NOT rolled"))
    op.drop_index("ix_usage_created_at", table_name="usage", postgresql_using="brin")
    op.drop_index("ix_usage_agent_id", table_name="usage")
    op.drop_table("usage")
