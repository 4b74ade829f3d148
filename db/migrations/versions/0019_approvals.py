"""Approvals and whom they ask."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "approvals",
        sa.Column("caller_id", sa.String(), nullable=False),
        sa.Column("workflow_execution_id", sa.String(), nullable=True),
        sa.Column("node_id", sa.String(), nullable=True),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("user_ids", postgresql.ARRAY(sa.String()), nullable=True),
        sa.Column("role", sa.String(), nullable=True),
        sa.Column("comment", sa.String(), nullable=True),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_id", sa.String(), nullable=True),
        sa.Column("correlation_id", sa.String(), nullable=False),
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
            name=op.f("fk_approvals_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approvals")),
    )
    for name, columns in (
        ("status", ["tenant_id", "status", "created_at", "id"]),
        ("workflow_execution_id", ["workflow_execution_id", "created_at", "id"]),
        ("decided_at", ["decided_at"]),
    ):
        op.create_index(f"ix_approvals_{name}", "approvals", columns)
    op.create_index(
        "ix_approvals_pending",
        "approvals",
        ["tenant_id", "caller_id"],
        postgresql_where=sa.text("status = 'pending'"),
    )
    _create_assignees()


def _create_assignees() -> None:
    op.create_table(
        "approval_assignees",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("approval_id", sa.String(), nullable=False),
        sa.Column("assignee", sa.String(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["approval_id"],
            ["approvals.id"],
            name=op.f("fk_approval_assignees_approval_id_approvals"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("approval_id", "assignee", name=op.f("pk_approval_assignees")),
    )
    op.create_index(
        "ix_approval_assignees_status",
        "approval_assignees",
        ["assignee", "status", "created_at", "approval_id"],
        postgresql_include=["tenant_id"],
    )


def downgrade() -> None:
    op.drop_table("approval_assignees")
    op.drop_table("approvals")
