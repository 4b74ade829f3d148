"""Drafts of forms, and conversations that fill them in."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "form_conversations",
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), server_default="active", nullable=False),
        sa.Column("data", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("skipped", postgresql.ARRAY(sa.String()), server_default="{}", nullable=False),
        sa.Column("current_field", sa.String(), nullable=True),
        sa.Column("turn", sa.Integer(), server_default="0", nullable=False),
        sa.Column("submission_id", sa.String(), nullable=True),
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
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"],
            ["forms.id"],
            name=op.f("fk_form_conversations_form_id_forms"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_conversations_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_form_conversations")),
    )
    op.create_index(
        "ix_form_conversations_expires_at",
        "form_conversations",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.create_index(
        "ix_form_conversations_form_id",
        "form_conversations",
        ["form_id", "status", "current_field"],
        unique=False,
    )
    op.create_index(
        "ix_form_conversations_status", "form_conversations", ["status", "updated_at"], unique=False
    )
    op.create_index(
        "ix_form_conversations_tenant_id", "form_conversations", ["tenant_id"], unique=False
    )
    op.create_table(
        "form_drafts",
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=True),
        sa.Column("data", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("stopped_at", sa.String(), nullable=True),
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
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"], ["forms.id"], name=op.f("fk_form_drafts_form_id_forms"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_drafts_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_form_drafts")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_form_drafts_token_hash")),
    )
    op.create_index(
        "ix_form_drafts_expires_at",
        "form_drafts",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("token_hash IS NOT NULL"),
    )
    op.create_index(
        "ix_form_drafts_form_id", "form_drafts", ["form_id", "stopped_at"], unique=False
    )
    op.create_index("ix_form_drafts_tenant_id", "form_drafts", ["tenant_id"], unique=False)
    op.create_table(
        "form_messages",
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("field_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["form_conversations.id"],
            name=op.f("fk_form_messages_conversation_id_form_conversations"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_messages_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_form_messages")),
    )
    op.create_index(
        "ix_form_messages_conversation_id",
        "form_messages",
        ["conversation_id", "position"],
        unique=False,
    )
    op.create_index("ix_form_messages_tenant_id", "form_messages", ["tenant_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_form_messages_tenant_id", table_name="form_messages")
    op.drop_index("ix_form_messages_conversation_id", table_name="form_messages")
    op.drop_table("form_messages")
    op.drop_index("ix_form_drafts_tenant_id", table_name="form_drafts")
    op.drop_index("ix_form_drafts_form_id", table_name="form_drafts")
    op.drop_index(
        "ix_form_drafts_expires_at",
        table_name="form_drafts",
        postgresql_where=sa.text("token_hash IS NOT NULL"),
    )
    op.drop_table("form_drafts")
    op.drop_index("ix_form_conversations_tenant_id", table_name="form_conversations")
    op.drop_index("ix_form_conversations_status", table_name="form_conversations")
    op.drop_index("ix_form_conversations_form_id", table_name="form_conversations")
    op.drop_index(
        "ix_form_conversations_expires_at",
        table_name="form_conversations",
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.drop_table("form_conversations")
