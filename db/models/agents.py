from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


class Agent(TenantOwned, HasId, Timestamps, Base):
    """A model with a prompt. An agent with a parent is deleted with it."""

    __tablename__ = "agents"
    __table_args__ = (
        Index(
            "ix_agents_tenant_id_created_at",
            "tenant_id",
            "created_at",
            "id",
            postgresql_where=text("parent_id IS NULL"),
        ),
        Index("ix_agents_parent_id", "parent_id"),
    )

    name: Mapped[str]
    description: Mapped[str] = mapped_column(default="", server_default="")
    primary_model: Mapped[str]
    # The provider of `primary_model`, stored so that one join finds its key.
    provider: Mapped[str]
    system_prompt: Mapped[str]
    temperature: Mapped[float] = mapped_column(default=0.7, server_default="0.7")
    max_tokens: Mapped[int] = mapped_column(default=2048, server_default="2048")
    status: Mapped[str] = mapped_column(default="draft", server_default="draft")
    version: Mapped[int] = mapped_column(default=1, server_default="1")
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    log_messages: Mapped[bool] = mapped_column(default=True, server_default="true")
    log_tool_calls: Mapped[bool] = mapped_column(default=True, server_default="true")
    log_token_usage: Mapped[bool] = mapped_column(default=True, server_default="true")
    retention_days: Mapped[int] = mapped_column(default=365, server_default="365")
    # How it searches its documents, where that differs from the usual.
    retrieval: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


class AgentVersion(TenantOwned, HasId, Base):
    """The settings of an agent between two changes."""

    __tablename__ = "agent_versions"
    __table_args__ = (UniqueConstraint("agent_id", "version", name="uq_agent_versions_agent_id"),)

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    version: Mapped[int]
    primary_model: Mapped[str]
    system_prompt: Mapped[str]
    temperature: Mapped[float]
    max_tokens: Mapped[int]
    note: Mapped[str] = mapped_column(default="", server_default="")
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class SubAgent(TenantOwned, HasId, Timestamps, Base):
    """An agent that another agent may delegate tasks to. The API names it by its agent id."""

    __tablename__ = "sub_agents"
    __table_args__ = (
        UniqueConstraint("agent_id", "child_id", name="uq_sub_agents_agent_id_child_id"),
        Index("ix_sub_agents_child_id", "child_id"),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    child_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    relationship_type: Mapped[str]
    is_enabled: Mapped[bool] = mapped_column(default=True, server_default="true")
    delegation_prompt: Mapped[str] = mapped_column(default="", server_default="")
