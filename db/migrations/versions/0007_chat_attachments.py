"""Files attached to messages, and the option of embed keys that allows them to visitors."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# The driver takes one statement at a time. The body of a function has semicolons, too.
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;$])+;", re.DOTALL)
_TRIGGERS = """
CREATE OR REPLACE FUNCTION count_delete_chat_attachments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.name) + octet_length(t.content) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_delete_chat_attachments AFTER DELETE ON chat_attachments
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_delete_chat_attachments();
CREATE OR REPLACE FUNCTION count_insert_chat_attachments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.name) + octet_length(t.content) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_insert_chat_attachments AFTER INSERT ON chat_attachments
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_insert_chat_attachments();
"""


def upgrade() -> None:
    op.create_table(
        "chat_attachments",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("embed_key_id", sa.String(), nullable=True),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("conversation_id", sa.String(), nullable=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("mime_type", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("characters", sa.Integer(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["agents.id"],
            name=op.f("fk_chat_attachments_agent_id_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_chat_attachments_conversation_id_conversations"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_chat_attachments_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_chat_attachments_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_attachments")),
    )
    op.create_index(
        "ix_chat_attachments_agent_id",
        "chat_attachments",
        ["tenant_id", "agent_id", "used_at"],
        unique=False,
    )
    op.create_index(
        "ix_chat_attachments_conversation_id",
        "chat_attachments",
        ["conversation_id"],
        unique=False,
        postgresql_where=sa.text("conversation_id IS NOT NULL"),
    )
    op.create_index(
        "ix_chat_attachments_expires_at",
        "chat_attachments",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.create_index(
        "ix_chat_attachments_user_id",
        "chat_attachments",
        ["user_id"],
        unique=False,
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.add_column(
        "embed_keys",
        sa.Column("allow_attachments", sa.Boolean(), server_default="false", nullable=False),
        if_not_exists=True,
    )
    for statement in _STATEMENT.findall(_TRIGGERS):
        op.execute(statement)


def downgrade() -> None:
    op.drop_column("embed_keys", "allow_attachments")
    op.drop_index(
        "ix_chat_attachments_user_id",
        table_name="chat_attachments",
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_chat_attachments_expires_at",
        table_name="chat_attachments",
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_chat_attachments_conversation_id",
        table_name="chat_attachments",
        postgresql_where=sa.text("conversation_id IS NOT NULL"),
    )
    op.drop_index("ix_chat_attachments_agent_id", table_name="chat_attachments")
    op.drop_table("chat_attachments")
    for change in ("insert", "delete"):
        op.execute(f"DROP FUNCTION count_{change}_chat_attachments()")
