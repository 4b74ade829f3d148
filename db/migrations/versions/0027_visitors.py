"""Limits of what visitors upload, recipients of forms' mails, and indexes for deleting answers."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_form_uploads_network", "form_uploads", ["form_id", "network", "created_at"])
    op.create_index(
        "ix_form_uploads_waiting",
        "form_uploads",
        ["tenant_id"],
        postgresql_include=["network", "size_bytes"],
        postgresql_where=sa.text("submission_id IS NULL"),
    )
    _create_recipients()
    _create_mail_counts()
    op.create_index(
        "ix_event_log_root",
        "event_log",
        ["root_id"],
        postgresql_where=sa.text("root_id IS NOT NULL"),
    )
    op.create_index(
        "ix_notification_messages_digest",
        "notification_messages",
        ["source"],
        postgresql_where=sa.text("starts_with(source, 'ntg_')"),
    )
    # Notifications about submissions had a copy of the answers.
    op.execute("""
    UPDATE notification_messages SET data = data - 'data'
    WHERE type = 'form_submission' AND data->>'event_type' = 'form.submission.created'
    """)


def _create_recipients() -> None:
    op.create_table(
        "form_recipients",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_recipients_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "address", name=op.f("pk_form_recipients")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_form_recipients_token_hash")),
    )


def _create_mail_counts() -> None:
    op.create_table(
        "form_mail_counts",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("mails", sa.Integer(), nullable=False),
        sa.Column("withheld", sa.Integer(), server_default="0", nullable=False),
        sa.Column("digests", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"],
            ["forms.id"],
            name=op.f("fk_form_mail_counts_form_id_forms"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_mail_counts_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("form_id", name=op.f("pk_form_mail_counts")),
    )
    op.create_index("ix_form_mail_counts_tenant_id", "form_mail_counts", ["tenant_id"])


def downgrade() -> None:
    op.drop_index("ix_notification_messages_digest", "notification_messages")
    op.drop_index("ix_event_log_root", "event_log")
    op.drop_table("form_mail_counts")
    op.drop_table("form_recipients")
    op.drop_index("ix_form_uploads_waiting", "form_uploads")
    op.drop_index("ix_form_uploads_network", "form_uploads")
