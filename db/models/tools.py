from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class Tool(TenantOwned, HasId, Timestamps, Base):
    """An endpoint, function, script or query that agents can run. `config` depends on its type."""

    __tablename__ = "tools"
    __table_args__ = (
        UniqueConstraint("tenant_id", "slug", name="uq_tools_tenant_id_slug"),
        Index("ix_tools_tenant_id_created_at", "tenant_id", "created_at", "id"),
    )

    name: Mapped[str]
    slug: Mapped[str]
    description: Mapped[str] = mapped_column(default="", server_default="")
    category: Mapped[str]
    tool_type: Mapped[str]
    config: Mapped[dict[str, Any]] = mapped_column(JSON)
    auth_type: Mapped[str]
    auth_config: Mapped[bytes | None] = mapped_column(Sealed)
    input_schema: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    output_schema: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    is_enabled: Mapped[bool] = mapped_column(default=True, server_default="true")
    usage_count: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    last_used_at: Mapped[datetime | None]


class ToolExecution(TenantOwned, HasId, Base):
    """One run of a tool. Until `finished_at` it is `pending` or `running`."""

    __tablename__ = "tool_executions"
    __table_args__ = (
        UniqueConstraint("tenant_id", "call_id", name="uq_tool_executions_tenant_id_call_id"),
        Index("ix_tool_executions_tool_id", "tool_id", "executed_at", "id"),
        # For deleting the content with the agent's log.
        Index(
            "ix_tool_executions_content",
            "tenant_id",
            "agent_id",
            "executed_at",
            postgresql_where=text(
                "input::text <> '{}' OR output IS NOT NULL OR error_message IS NOT NULL"
            ),
        ),
        Index("ix_tool_executions_tenant_id_correlation_id", "tenant_id", "correlation_id"),
        Index("ix_tool_executions_tenant_id_executed_at", "tenant_id", "executed_at"),
    )

    tool_id: Mapped[str] = mapped_column(ForeignKey("tools.id", ondelete="CASCADE"))
    # No foreign key: the execution outlives the agent.
    agent_id: Mapped[str | None]
    # The tool call of a conversation, unique so that a repeated turn runs it once.
    call_id: Mapped[str | None]
    work_id: Mapped[str]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    input: Mapped[dict[str, Any]] = mapped_column(JSON)
    output: Mapped[Any | None] = mapped_column(JSON(none_as_null=True))
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    execution_time_ms: Mapped[int] = mapped_column(default=0, server_default="0")
    correlation_id: Mapped[str]
    executed_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]


class AgentTool(TenantOwned, HasId, Base):
    """A tool that an agent may call, with optional overrides of its settings."""

    __tablename__ = "agent_tools"
    __table_args__ = (
        UniqueConstraint("agent_id", "tool_id", name="uq_agent_tools_agent_id_tool_id"),
        Index("ix_agent_tools_tool_id", "tool_id"),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    tool_id: Mapped[str] = mapped_column(ForeignKey("tools.id", ondelete="CASCADE"))
    is_enabled: Mapped[bool] = mapped_column(default=True, server_default="true")
    display_order: Mapped[int] = mapped_column(default=0, server_default="0")
    config_override: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    override_auth: Mapped[bytes | None] = mapped_column(Sealed)
    attached_at: Mapped[datetime] = mapped_column(server_default=func.now())
