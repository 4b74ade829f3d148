"""Programs act with keys of their own, and have conversations like users."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# What belongs to a user or to a service key.
_OWNED = ("conversations", "chat_jobs", "chat_attachments", "message_feedback")


def upgrade() -> None:
    op.create_table(
        "service_keys",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("agent_ids", JSONB(), nullable=True),
        sa.Column("key_prefix", sa.String(), nullable=False),
        sa.Column("key_hash", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
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
            name=op.f("fk_service_keys_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_service_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_service_keys_key_hash")),
    )
    op.create_index("ix_service_keys_created_at", "service_keys", ["tenant_id", "created_at", "id"])
    op.create_index(
        "ix_service_keys_revoked_at",
        "service_keys",
        ["revoked_at"],
        postgresql_where=sa.text("revoked_at IS NOT NULL"),
    )
    for table in _OWNED:
        op.drop_constraint(f"fk_{table}_user_id_users", table, type_="foreignkey")
    deletions = " ".join(f"DELETE FROM {table} WHERE user_id = OLD.id;" for table in _OWNED)
    op.execute(
        "CREATE FUNCTION delete_chats_of_user() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {deletions} RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER delete_chats_of_user AFTER DELETE ON users "
        "FOR EACH ROW EXECUTE FUNCTION delete_chats_of_user()"
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER delete_chats_of_user ON users")
    op.execute("DROP FUNCTION delete_chats_of_user()")
    for table in _OWNED:
        op.execute(
            f"DELETE FROM {table} t WHERE user_id IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = t.user_id)"
        )
        op.create_foreign_key(
            f"fk_{table}_user_id_users", table, "users", ["user_id"], ["id"], ondelete="CASCADE"
        )
    op.drop_table("service_keys")
