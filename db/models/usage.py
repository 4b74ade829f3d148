from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import BigInteger, Index, Numeric, PrimaryKeyConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, TenantOwned


class Usage(TenantOwned, Base):
    """The usage of one model by one turn, or by one call outside of a turn: for embeddings or
    speech, with an id of its own as `message_id` and no conversation. Tenants are billed by it, so
    it outlives the agent.
    """

    __tablename__ = "usage"
    __table_args__ = (
        Index("ix_usage_not_rolled", "tenant_id", "agent_id", postgresql_where=text("NOT rolled")),
        Index("ix_usage_agent_id", "agent_id", "created_at"),
        Index("ix_usage_correlation_id", "tenant_id", "correlation_id"),
        Index("ix_usage_created_at", "created_at", postgresql_where=text("rolled")),
    )

    # No foreign key: turns would wait for locks on their tenant's row.
    tenant_id: Mapped[str] = mapped_column()
    # The tenant's id for a call without an agent, also in the sums.
    agent_id: Mapped[str]
    conversation_id: Mapped[str]
    message_id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str | None]
    # The user, the service key or the embed key; None for none.
    caller_id: Mapped[str | None]
    source: Mapped[str]
    model: Mapped[str] = mapped_column(primary_key=True)
    prompt_tokens: Mapped[int]
    completion_tokens: Mapped[int]
    cost_usd: Mapped[Decimal] = mapped_column(Numeric(18, 9))
    # Totals of the turn, on the row of the agent's own model; 0 on the other rows.
    turns: Mapped[int]
    conversations: Mapped[int]
    messages: Mapped[int]
    failures: Mapped[int] = mapped_column(server_default="0")
    response_time_ms: Mapped[int]
    correlation_id: Mapped[str | None]
    # True when the row is added to its hour.
    rolled: Mapped[bool] = mapped_column(default=False, server_default="false")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class UsageHour(TenantOwned, Base):
    """The sums of an hour. Only workers write it, so that turns never wait for its lock."""

    __tablename__ = "usage_hours"
    __table_args__ = (
        Index("ix_usage_hours_tenant_id", "tenant_id", "hour"),
        # For reports on all tenants.
        Index("ix_usage_hours_hour", "hour"),
    )

    agent_id: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    hour: Mapped[datetime] = mapped_column(primary_key=True)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    cost_usd: Mapped[Decimal] = mapped_column(Numeric(18, 9))
    turns: Mapped[int] = mapped_column(BigInteger)
    conversations: Mapped[int] = mapped_column(BigInteger)
    messages: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(BigInteger, server_default="0")
    response_time_ms: Mapped[int] = mapped_column(BigInteger)


class UsageDay(TenantOwned, Base):
    """The sums of a day in UTC, written together with those of its hours."""

    __tablename__ = "usage_days"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "day", "agent_id", "model"),
        Index("ix_usage_days_day", "day"),
    )

    agent_id: Mapped[str]
    model: Mapped[str]
    day: Mapped[date]
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    cost_usd: Mapped[Decimal] = mapped_column(Numeric(18, 9))
    turns: Mapped[int] = mapped_column(BigInteger, server_default="0")
    conversations: Mapped[int] = mapped_column(BigInteger)


class UsageCount(TenantOwned, Base):
    """One execution that is not added to its hour and day yet."""

    __tablename__ = "usage_counts"
    __table_args__ = (Index("ix_usage_counts_tenant_id", "tenant_id"),)

    # No foreign key: executions would wait for locks on their tenant's row.
    tenant_id: Mapped[str] = mapped_column()
    kind: Mapped[str] = mapped_column(primary_key=True)
    # The id of the execution.
    id: Mapped[str] = mapped_column(primary_key=True)
    # "" without an agent.
    agent_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class UsageCountHour(TenantOwned, Base):
    """How many requests or executions an hour had. Only the last hours are kept."""

    __tablename__ = "usage_count_hours"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "hour", "kind", "agent_id"),
        Index("ix_usage_count_hours_hour", "hour"),
    )

    kind: Mapped[str]
    agent_id: Mapped[str]
    hour: Mapped[datetime]
    amount: Mapped[int] = mapped_column(BigInteger)


class UsageCountDay(TenantOwned, Base):
    """How many requests or executions a day in UTC had."""

    __tablename__ = "usage_count_days"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "day", "kind", "agent_id"),
        Index("ix_usage_count_days_day", "day"),
    )

    kind: Mapped[str]
    agent_id: Mapped[str]
    day: Mapped[date]
    amount: Mapped[int] = mapped_column(BigInteger)


class UsageCallerHour(TenantOwned, Base):
    """What a user or key used in an hour. Only the last weeks are kept. Requests have
    neither an agent nor a source: both are "". So is the caller of what nobody has asked for.
    """

    __tablename__ = "usage_caller_hours"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "hour", "agent_id", "caller_id", "source"),
        Index("ix_usage_caller_hours_hour", "hour"),
    )

    hour: Mapped[datetime]
    agent_id: Mapped[str]
    caller_id: Mapped[str]
    source: Mapped[str]
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    cost_usd: Mapped[Decimal] = mapped_column(Numeric(18, 9))
    turns: Mapped[int] = mapped_column(BigInteger)
    conversations: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int] = mapped_column(BigInteger)


class UsageCallerDay(TenantOwned, Base):
    """What a user or key used in a day in UTC. Requests have
    neither an agent nor a source: both are "". So is the caller of what nobody has asked for.
    """

    __tablename__ = "usage_caller_days"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "day", "agent_id", "caller_id", "source"),
        Index("ix_usage_caller_days_day", "day"),
    )

    day: Mapped[date]
    agent_id: Mapped[str]
    caller_id: Mapped[str]
    source: Mapped[str]
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    cost_usd: Mapped[Decimal] = mapped_column(Numeric(18, 9))
    turns: Mapped[int] = mapped_column(BigInteger)
    conversations: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int] = mapped_column(BigInteger)


class UsageName(TenantOwned, Base):
    """The last name of an agent or a key that has usage, which outlives it."""

    __tablename__ = "usage_names"
    __table_args__ = (PrimaryKeyConstraint("tenant_id", "id"),)

    id: Mapped[str]
    name: Mapped[str]
