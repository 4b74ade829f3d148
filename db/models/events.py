from datetime import datetime
from typing import Any

from sqlalchemy import Index, SmallInteger, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


class RequestSpan(TenantOwned, HasId, Base):
    """How long a request lasted that emitted events. Written after its end, so that a request that
    has none is still running, or its process was killed.
    """

    __tablename__ = "request_spans"
    __table_args__ = (
        Index("ix_request_spans_correlation", "tenant_id", "correlation_id"),
        Index("ix_request_spans_started_at", "started_at"),
    )

    # No foreign key, as in the event log.
    tenant_id: Mapped[str] = mapped_column()
    correlation_id: Mapped[str]
    # The client may choose it, so it is not unique.
    request_id: Mapped[str]
    started_at: Mapped[datetime]
    duration_ms: Mapped[float]
    # Method and path, and the status of the response; None for those of release 0.1.0.
    name: Mapped[str | None]
    status_code: Mapped[int | None] = mapped_column(SmallInteger)


class EventLog(TenantOwned, HasId, Base):
    """All events in the order of their ids, each written in the transaction that caused it."""

    __tablename__ = "event_log"
    __table_args__ = (
        Index("ix_event_log_time", "tenant_id", "created_at", "id"),
        Index("ix_event_log_type", "tenant_id", "type", "created_at", "id"),
        Index("ix_event_log_correlation", "tenant_id", "correlation_id", "created_at", "id"),
        # What an event caused.
        Index("ix_event_log_root", "root_id", postgresql_where=text("root_id IS NOT NULL")),
        # For deleting test events.
        Index("ix_event_log_test", "created_at", postgresql_where=text("test")),
        # For deleting events that contain payloads.
        Index(
            "ix_event_log_received_by_tenant",
            "tenant_id",
            "created_at",
            postgresql_where=text("type = 'system.incoming_webhook.received'"),
        ),
        # For deleting the texts of chat events with the agent's log.
        Index(
            "ix_event_log_chat",
            text("(data->>'agent_id')"),
            "created_at",
            postgresql_where=text(
                "type IN ('agent.chat.message', 'agent.chat.completed', 'agent.chat.failed',"
                " 'agent.chat.rated') AND NOT test"
            ),
        ),
    )

    # No foreign key: events of a tenant would wait for locks on its row.
    tenant_id: Mapped[str] = mapped_column()
    type: Mapped[str]
    correlation_id: Mapped[str]
    parent_id: Mapped[str | None]
    request_id: Mapped[str | None]
    actor_id: Mapped[str | None]
    # The number of events before this one in its chain of causes.
    depth: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    # The first event of the chain, unless this is the first. `offspring` is set on the first: how
    # much work the chain has created.
    root_id: Mapped[str | None]
    offspring: Mapped[int] = mapped_column(default=0, server_default="0")
    # True for test events, which a user sent to try subscriptions and webhooks.
    test: Mapped[bool] = mapped_column(default=False, server_default="false")
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
