"""Tools, their executions, and the tools of agents."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tools",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("description", sa.String(), server_default="", nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("tool_type", sa.String(), nullable=False),
        sa.Column("config", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("auth_type", sa.String(), nullable=False),
        sa.Column("auth_config", sa.LargeBinary(), nullable=True),
        sa.Column(
            "input_schema", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "output_schema",
            postgresql.JSON(none_as_null=True, astext_type=sa.Text()),
            nullable=True,
        ),
        sa.Column("is_enabled", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("usage_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
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
            name=op.f("fk_tools_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tools")),
        sa.UniqueConstraint("tenant_id", "slug", name="uq_tools_tenant_id_slug"),
    )
    op.create_index(
        "ix_tools_tenant_id_created_at", "tools", ["tenant_id", "created_at", "id"], unique=False
    )
    op.create_table(
        "agent_tools",
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("tool_id", sa.String(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("display_order", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "config_override",
            postgresql.JSON(none_as_null=True, astext_type=sa.Text()),
            nullable=True,
        ),
        sa.Column("override_auth", sa.LargeBinary(), nullable=True),
        sa.Column(
            "attached_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["agents.id"],
            name=op.f("fk_agent_tools_agent_id_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_agent_tools_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tool_id"], ["tools.id"], name=op.f("fk_agent_tools_tool_id_tools"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_tools")),
        sa.UniqueConstraint("agent_id", "tool_id", name="uq_agent_tools_agent_id_tool_id"),
    )
    op.create_index("ix_agent_tools_tool_id", "agent_tools", ["tool_id"], unique=False)
    op.create_table(
        "tool_executions",
        sa.Column("tool_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=True),
        sa.Column("call_id", sa.String(), nullable=True),
        sa.Column("work_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("input", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "output", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error_message", sa.String(), nullable=True),
        sa.Column("execution_time_ms", sa.Integer(), server_default="0", nullable=False),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column(
            "executed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_tool_executions_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tool_id"],
            ["tools.id"],
            name=op.f("fk_tool_executions_tool_id_tools"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tool_executions")),
        sa.UniqueConstraint("tenant_id", "call_id", name="uq_tool_executions_tenant_id_call_id"),
    )
    op.create_index("ix_tool_executions_agent_id", "tool_executions", ["agent_id"], unique=False)
    op.create_index(
        "ix_tool_executions_executed_at", "tool_executions", ["executed_at"], unique=False
    )
    op.create_index(
        "ix_tool_executions_tenant_id_correlation_id",
        "tool_executions",
        ["tenant_id", "correlation_id"],
        unique=False,
    )
    op.create_index(
        "ix_tool_executions_tool_id",
        "tool_executions",
        ["tool_id", "executed_at", "id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index("ix_tool_executions_tool_id", table_name="tool_executions")
    op.drop_index("ix_tool_executions_tenant_id_correlation_id", table_name="tool_executions")
    op.drop_index("ix_tool_executions_executed_at", table_name="tool_executions")
    op.drop_index("ix_tool_executions_agent_id", table_name="tool_executions")
    op.drop_table("tool_executions")
    op.drop_index("ix_agent_tools_tool_id", table_name="agent_tools")
    op.drop_table("agent_tools")
    op.drop_index("ix_tools_tenant_id_created_at", table_name="tools")
    op.drop_table("tools")
