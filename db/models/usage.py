from datetime import datetime
from decimal import Decimal

from sqlalchemy import BigInteger, Index, Numeric, func, text
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, DateTimeUTC, TenantOwned


class Usage(TenantOwned, Base):
    """The usage of one model by one turn. Tenants are billed by it, so it outlives the agent."""

    __tablename__ = "usage"
    __table_args__ = (
        Index("ix_usage_not_rolled", "tenant_id", "agent_id", postgresql_where=text("NOT rolled")),
        Index("ix_usage_agent_id", "agent_id", "created_at"),
        Index("ix_usage_correlation_id", "tenant_id", "correlation_id"),
        Index("ix_usage_created_at", "created_at", postgresql_where=text("rolled")),
    )

    # No foreign key: turns would wait for locks on their tenant's row.
    tenant_id: Mapped[str] = mapped_column()
    agent_id: Mapped[str]
    conversation_id: Mapped[str]
    message_id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str | None]
    source: Mapped[str]
    model: Mapped[str] = mapped_column(primary_key=True)
    prompt_tokens: Mapped[int]
    completion_tokens: Mapped[int]
    cost_usd: Mapped[Decimal] = mapped_column(Numeric(18, 9))
    # Totals of the turn, on the row of the agent's own model; 0 on the other rows.
    turns: Mapped[int]
    conversations: Mapped[int]
    messages: Mapped[int]
    response_time_ms: Mapped[int]
    correlation_id: Mapped[str | None]
    # True when the row is added to its hour.
    rolled: Mapped[bool] = mapped_column(default=False, server_default="false")
    created_at: Mapped[datetime] = mapped_column(
        DateTimeUTC(timezone=True), server_default=func.now()
    )


class UsageHour(TenantOwned, Base):
    """The sums of an hour. Only workers write it, so that turns never wait for its lock."""

    __tablename__ = "usage_hours"
    __table_args__ = (Index("ix_usage_hours_tenant_id", "tenant_id", "hour"),)

    agent_id: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    hour: Mapped[datetime] = mapped_column(DateTimeUTC(timezone=True), primary_key=True)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    cost_usd: Mapped[Decimal] = mapped_column(Numeric(18, 9))
    turns: Mapped[int] = mapped_column(BigInteger)
    conversations: Mapped[int] = mapped_column(BigInteger)
    messages: Mapped[int] = mapped_column(BigInteger)
    response_time_ms: Mapped[int] = mapped_column(BigInteger)
