from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, text
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


class EventSubscription(TenantOwned, HasId, Timestamps, Base):
    """The action to run for events of a type whose data match the filters."""

    __tablename__ = "event_subscriptions"
    __table_args__ = (
        Index("ix_event_subscriptions_tenant_id_created_at", "tenant_id", "created_at", "id"),
        Index(
            "ix_event_subscriptions_active",
            "tenant_id",
            "event_type",
            postgresql_where=text("active"),
        ),
    )

    event_type: Mapped[str]
    action_type: Mapped[str]
    # Secret headers of a URL are not here but sealed with its endpoint.
    action_config: Mapped[dict[str, Any]] = mapped_column(JSON)
    filters: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    active: Mapped[bool] = mapped_column(default=True, server_default="true")
    trigger_count: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    last_triggered_at: Mapped[datetime | None]
    created_by: Mapped[str | None]
