"""Forms, their versions, figures, submissions and uploads."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "forms",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("description", sa.String(), server_default="", nullable=False),
        sa.Column("status", sa.String(), server_default="draft", nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("field_count", sa.Integer(), nullable=False),
        sa.Column(
            "settings", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column(
            "branding", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("workflow_id", sa.String(), nullable=True),
        sa.Column(
            "data_table_config",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            nullable=True,
        ),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
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
            name=op.f("fk_forms_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_forms")),
        sa.UniqueConstraint("slug", name=op.f("uq_forms_slug")),
    )
    op.create_index(
        "ix_forms_deleted_at",
        "forms",
        ["deleted_at"],
        unique=False,
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "ix_forms_tenant_id_created_at", "forms", ["tenant_id", "created_at", "id"], unique=False
    )
    op.create_table(
        "form_counts",
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("submissions", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"], ["forms.id"], name=op.f("fk_form_counts_form_id_forms"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_counts_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("form_id", "part", name=op.f("pk_form_counts")),
    )
    op.create_index("ix_form_counts_tenant_id", "form_counts", ["tenant_id"], unique=False)
    op.create_table(
        "form_submissions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), server_default="received", nullable=False),
        sa.Column("data", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("custom_metadata", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("ip_address", sa.String(), nullable=False),
        sa.Column("user_agent", sa.String(), nullable=False),
        sa.Column("page_url", sa.String(), nullable=False),
        sa.Column("referrer", sa.String(), nullable=False),
        sa.Column("flags", postgresql.ARRAY(sa.String()), server_default="{}", nullable=False),
        sa.Column("answered", sa.String(), nullable=False),
        sa.Column("completion_seconds", sa.Integer(), nullable=True),
        sa.Column("fingerprint", sa.BigInteger(), nullable=False),
        sa.Column("submitted_by", sa.String(), nullable=True),
        sa.Column("conversation_id", sa.String(), nullable=True),
        sa.Column("workflow_execution_id", sa.String(), nullable=True),
        sa.Column("row_id", sa.String(), nullable=True),
        sa.Column("errors", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("processed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"],
            ["forms.id"],
            name=op.f("fk_form_submissions_form_id_forms"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_form_submissions")),
    )
    op.create_index(
        "ix_form_submissions_figures",
        "form_submissions",
        ["form_id", "version", "answered"],
        unique=False,
        postgresql_include=["tenant_id", "source", "created_at", "completion_seconds"],
    )
    op.create_index(
        "ix_form_submissions_fingerprint",
        "form_submissions",
        ["fingerprint", "created_at"],
        unique=False,
    )
    op.create_index(
        "ix_form_submissions_form_id_created_at",
        "form_submissions",
        ["form_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_form_submissions_form_id_status",
        "form_submissions",
        ["form_id", "status", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "form_uploads",
        sa.Column("file_id", sa.String(), nullable=False),
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("field_id", sa.String(), nullable=False),
        sa.Column("submission_id", sa.String(), nullable=True),
        sa.Column("filename", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("mime_type", sa.String(), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"],
            ["forms.id"],
            name=op.f("fk_form_uploads_form_id_forms"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_uploads_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_form_uploads")),
    )
    op.create_index(
        "ix_form_uploads_expires_at",
        "form_uploads",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.create_index(
        "ix_form_uploads_form_id", "form_uploads", ["form_id", "submission_id"], unique=False
    )
    op.create_index(
        "ix_form_uploads_submission_id",
        "form_uploads",
        ["submission_id"],
        unique=False,
        postgresql_where=sa.text("submission_id IS NOT NULL"),
    )
    op.create_index("ix_form_uploads_tenant_id", "form_uploads", ["tenant_id"], unique=False)
    op.create_table(
        "form_versions",
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fields", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"],
            ["forms.id"],
            name=op.f("fk_form_versions_form_id_forms"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_versions_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_form_versions")),
        sa.UniqueConstraint("form_id", "version", name="uq_form_versions_form_id_version"),
    )
    op.create_index("ix_form_versions_tenant_id", "form_versions", ["tenant_id"], unique=False)
    op.create_table(
        "form_views",
        sa.Column("form_id", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("views", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["form_id"], ["forms.id"], name=op.f("fk_form_views_form_id_forms"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_form_views_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("form_id", "day", name=op.f("pk_form_views")),
    )
    op.create_index("ix_form_views_tenant_id", "form_views", ["tenant_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_form_views_tenant_id", table_name="form_views")
    op.drop_table("form_views")
    op.drop_index("ix_form_versions_tenant_id", table_name="form_versions")
    op.drop_table("form_versions")
    op.drop_index("ix_form_uploads_tenant_id", table_name="form_uploads")
    op.drop_index(
        "ix_form_uploads_submission_id",
        table_name="form_uploads",
        postgresql_where=sa.text("submission_id IS NOT NULL"),
    )
    op.drop_index("ix_form_uploads_form_id", table_name="form_uploads")
    op.drop_index(
        "ix_form_uploads_expires_at",
        table_name="form_uploads",
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.drop_table("form_uploads")
    op.drop_index("ix_form_submissions_form_id_status", table_name="form_submissions")
    op.drop_index("ix_form_submissions_form_id_created_at", table_name="form_submissions")
    op.drop_index("ix_form_submissions_fingerprint", table_name="form_submissions")
    op.drop_index(
        "ix_form_submissions_figures",
        table_name="form_submissions",
        postgresql_include=["tenant_id", "source", "created_at", "completion_seconds"],
    )
    op.drop_table("form_submissions")
    op.drop_index("ix_form_counts_tenant_id", table_name="form_counts")
    op.drop_table("form_counts")
    op.drop_index("ix_forms_tenant_id_created_at", table_name="forms")
    op.drop_index(
        "ix_forms_deleted_at",
        table_name="forms",
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.drop_table("forms")
