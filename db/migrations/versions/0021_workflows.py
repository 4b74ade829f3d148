"""Workflows, their versions, executions and nodes; who waits for a chat job."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "workflows",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), server_default="", nullable=False),
        sa.Column("status", sa.String(), server_default="draft", nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("published_version", sa.Integer(), nullable=True),
        sa.Column(
            "trigger", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("next_run_at", sa.DateTime(timezone=True), nullable=True),
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
            name=op.f("fk_workflows_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflows")),
    )
    op.create_index(
        "ix_workflows_deleted_at",
        "workflows",
        ["deleted_at"],
        unique=False,
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "ix_workflows_next_run_at",
        "workflows",
        ["next_run_at"],
        unique=False,
        postgresql_where=sa.text("next_run_at IS NOT NULL"),
    )
    op.create_index(
        "ix_workflows_tenant_id_created_at",
        "workflows",
        ["tenant_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "workflow_executions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column(
            "progress", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("stored_bytes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("input", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "output", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "error", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("trigger_type", sa.String(), nullable=False),
        sa.Column("trigger_id", sa.String(), nullable=True),
        sa.Column("started_by", sa.String(), nullable=True),
        sa.Column("caller_id", sa.String(), nullable=True),
        sa.Column("depth", sa.Integer(), server_default="0", nullable=False),
        sa.Column("dedupe_key", sa.String(), nullable=True),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column("cause_event_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"],
            ["workflows.id"],
            name=op.f("fk_workflow_executions_workflow_id_workflows"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflow_executions")),
        sa.UniqueConstraint(
            "tenant_id", "dedupe_key", name="uq_workflow_executions_tenant_id_dedupe_key"
        ),
    )
    op.create_index(
        "ix_workflow_executions_active",
        "workflow_executions",
        ["tenant_id", "status", sa.text("depth DESC"), "id"],
        unique=False,
        postgresql_where=sa.text("status IN ('pending', 'running', 'waiting')"),
    )
    op.create_index(
        "ix_workflow_executions_correlation_id",
        "workflow_executions",
        ["tenant_id", "correlation_id"],
        unique=False,
    )
    op.create_index(
        "ix_workflow_executions_finished_at", "workflow_executions", ["finished_at"], unique=False
    )
    op.create_index(
        "ix_workflow_executions_started_at",
        "workflow_executions",
        ["tenant_id", "started_at"],
        unique=False,
    )
    op.create_index(
        "ix_workflow_executions_tenant_id_created_at",
        "workflow_executions",
        ["tenant_id", "status", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_workflow_executions_tenant_id_finished_at",
        "workflow_executions",
        ["tenant_id", "status", "finished_at", "id"],
        unique=False,
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index(
        "ix_workflow_executions_workflow_id_created_at",
        "workflow_executions",
        ["workflow_id", "tenant_id", "status", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_workflow_executions_workflow_id_finished_at",
        "workflow_executions",
        ["workflow_id", "tenant_id", "status", "finished_at", "id"],
        unique=False,
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_table(
        "workflow_versions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("definition", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"],
            ["workflows.id"],
            name=op.f("fk_workflow_versions_workflow_id_workflows"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflow_versions")),
        sa.UniqueConstraint(
            "workflow_id", "version", name="uq_workflow_versions_workflow_id_version"
        ),
    )
    op.create_table(
        "workflow_nodes",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("execution_id", sa.String(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("reads", postgresql.ARRAY(sa.String()), server_default="{}", nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "input", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "output", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "error", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("ref_id", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["execution_id"],
            ["workflow_executions.id"],
            name=op.f("fk_workflow_nodes_execution_id_workflow_executions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflow_nodes")),
        sa.UniqueConstraint(
            "execution_id", "node_id", name="uq_workflow_nodes_execution_id_node_id"
        ),
    )
    op.add_column("chat_jobs", sa.Column("caller_id", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("chat_jobs", "caller_id")
    op.drop_table("workflow_nodes")
    op.drop_table("workflow_versions")
    op.drop_index(
        "ix_workflow_executions_workflow_id_finished_at",
        table_name="workflow_executions",
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.drop_index("ix_workflow_executions_workflow_id_created_at", table_name="workflow_executions")
    op.drop_index(
        "ix_workflow_executions_tenant_id_finished_at",
        table_name="workflow_executions",
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.drop_index("ix_workflow_executions_tenant_id_created_at", table_name="workflow_executions")
    op.drop_index("ix_workflow_executions_started_at", table_name="workflow_executions")
    op.drop_index("ix_workflow_executions_finished_at", table_name="workflow_executions")
    op.drop_index("ix_workflow_executions_correlation_id", table_name="workflow_executions")
    op.drop_index(
        "ix_workflow_executions_active",
        table_name="workflow_executions",
        postgresql_where=sa.text("status IN ('pending', 'running', 'waiting')"),
    )
    op.drop_table("workflow_executions")
    op.drop_index("ix_workflows_tenant_id_created_at", table_name="workflows")
    op.drop_index(
        "ix_workflows_next_run_at",
        table_name="workflows",
        postgresql_where=sa.text("next_run_at IS NOT NULL"),
    )
    op.drop_index(
        "ix_workflows_deleted_at",
        table_name="workflows",
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.drop_table("workflows")
