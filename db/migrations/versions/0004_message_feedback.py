"""Ratings of answers, and the option of embed keys that allows them to visitors."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# The driver takes one statement at a time. The body of a function has semicolons, too.
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;$])+;", re.DOTALL)
_TRIGGERS = """
CREATE OR REPLACE FUNCTION count_delete_message_feedback() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', -sum(bytes) FROM (
        SELECT tenant_id, 256 + coalesce(octet_length(t.comment), 0) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_delete_message_feedback AFTER DELETE ON message_feedback
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_delete_message_feedback();
CREATE OR REPLACE FUNCTION count_insert_message_feedback() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', sum(bytes) FROM (
        SELECT tenant_id, 256 + coalesce(octet_length(t.comment), 0) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_insert_message_feedback AFTER INSERT ON message_feedback
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
EXECUTE FUNCTION count_insert_message_feedback();
CREATE OR REPLACE FUNCTION count_update_message_feedback() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint := (256 + coalesce(octet_length(NEW.comment), 0))
    - (256 + coalesce(octet_length(OLD.comment), 0));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'conversations', change);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_update_message_feedback AFTER UPDATE ON message_feedback
FOR EACH ROW WHEN (OLD.comment IS DISTINCT FROM NEW.comment)
EXECUTE FUNCTION count_update_message_feedback();
"""


def upgrade() -> None:
    op.create_table(
        "message_feedback",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("message_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("rating", sa.String(), nullable=False),
        sa.Column("comment", sa.String(), nullable=True),
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
            ["message_id"],
            ["conversation_entries.id"],
            name=op.f("fk_message_feedback_message_id_conversation_entries"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_message_feedback_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_message_feedback_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message_feedback")),
    )
    op.create_index(
        "ix_message_feedback_agent_id",
        "message_feedback",
        ["tenant_id", "agent_id", "message_at"],
        unique=False,
    )
    op.create_index(
        "ix_message_feedback_user_id",
        "message_feedback",
        ["user_id"],
        unique=False,
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_index(
        "uq_message_feedback_message_id",
        "message_feedback",
        ["message_id", "user_id"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.add_column(
        "embed_keys",
        sa.Column("allow_feedback", sa.Boolean(), server_default="true", nullable=False),
    )
    for statement in _STATEMENT.findall(_TRIGGERS):
        op.execute(statement)


def downgrade() -> None:
    op.drop_column("embed_keys", "allow_feedback")
    op.drop_index(
        "uq_message_feedback_message_id",
        table_name="message_feedback",
        postgresql_nulls_not_distinct=True,
    )
    op.drop_index(
        "ix_message_feedback_user_id",
        table_name="message_feedback",
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.drop_index("ix_message_feedback_agent_id", table_name="message_feedback")
    op.drop_table("message_feedback")
    for change in ("insert", "delete", "update"):
        op.execute(f"DROP FUNCTION count_{change}_message_feedback()")
