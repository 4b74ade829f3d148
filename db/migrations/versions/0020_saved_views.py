"""Users keep filters of lists under a name."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_DELETED = (
    *("conversations", "chat_jobs", "chat_attachments", "message_feedback"),
    *("conversation_reads", "conversation_readers"),
)


def _delete_with_users(more: str) -> None:
    deletions = " ".join(f"DELETE FROM {table} WHERE user_id = OLD.id;" for table in _DELETED)
    op.execute(
        "CREATE OR REPLACE FUNCTION delete_chats_of_user() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {deletions} {more} RETURN NULL; END $$"
    )


def upgrade() -> None:
    op.create_table(
        "saved_views",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("filters", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
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
            name=op.f("fk_saved_views_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_views")),
    )
    op.create_index("ix_saved_views_tenant_id", "saved_views", ["tenant_id"])
    op.create_index("ix_saved_views_user_id", "saved_views", ["user_id"])
    _delete_with_users("DELETE FROM saved_views WHERE user_id = OLD.id AND NOT is_shared;")


def downgrade() -> None:
    _delete_with_users("")
    op.drop_table("saved_views")
