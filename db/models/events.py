from datetime import datetime
from typing import Any

from advanced_alchemy.types import DateTimeUTC
from sqlalchemy import Index, SmallInteger, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


class EventLog(TenantOwned, HasId, Base):
    """Everything that happened, in the order of its ids; written in the transaction that did it."""

    __tablename__ = "event_log"
    __table_args__ = (
        Index("ix_event_log_time", "tenant_id", "created_at", "id"),
        Index("ix_event_log_type", "tenant_id", "type", "created_at", "id"),
        Index("ix_event_log_correlation", "tenant_id", "correlation_id", "created_at", "id"),
        # Rows come in the order of time, so that this costs next to nothing.
        Index("ix_event_log_created_at", "created_at", postgresql_using="brin"),
        # What was said is forgotten when its agent's log is.
        Index(
            "ix_event_log_said",
            text("(data->>'agent_id')"),
            "created_at",
            postgresql_where=text(
                "type IN ('agent.chat.message', 'agent.chat.completed') AND NOT test"
            ),
        ),
    )

    # No reference: whatever happens in a tenant need not queue for a lock on its row.
    tenant_id: Mapped[str] = mapped_column()
    type: Mapped[str]
    correlation_id: Mapped[str]
    parent_id: Mapped[str | None]
    request_id: Mapped[str | None]
    actor_id: Mapped[str | None]
    # How many events led to this one, one after the other.
    depth: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    # The first of the chain, where others led to this one; on the first itself: how much work the
    # chain has made since.
    root_id: Mapped[str | None]
    offspring: Mapped[int] = mapped_column(default=0, server_default="0")
    # Emitted by somebody who tries things out: it did not happen.
    test: Mapped[bool] = mapped_column(default=False, server_default="false")
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(
        DateTimeUTC(timezone=True), server_default=func.now()
    )
