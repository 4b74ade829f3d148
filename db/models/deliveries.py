from datetime import datetime

from sqlalchemy import ARRAY, ForeignKey, Index, String, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class Webhook(TenantOwned, HasId, Timestamps, Base):
    """An endpoint that events are sent to. `keys` seals its secret, the previous secret and the
    custom headers.
    """

    __tablename__ = "webhooks"
    __table_args__ = (
        Index("ix_webhooks_tenant_id_created_at", "tenant_id", "created_at", "id"),
        Index(
            "ix_webhooks_active",
            "tenant_id",
            postgresql_where=text("active AND subscription_id IS NULL"),
        ),
    )

    # Set for the endpoint of a subscription with its own URL, which no webhook list shows.
    subscription_id: Mapped[str | None] = mapped_column(
        ForeignKey("event_subscriptions.id", ondelete="CASCADE"), unique=True
    )
    url: Mapped[str]
    events: Mapped[list[str]] = mapped_column(ARRAY(String))
    active: Mapped[bool] = mapped_column(default=True, server_default="true")
    description: Mapped[str] = mapped_column(default="", server_default="")
    keys: Mapped[bytes] = mapped_column(Sealed)
    secrets_updated_at: Mapped[datetime | None]
    # Until then, requests are also signed with the previous secret.
    previous_until: Mapped[datetime | None]
    # The time of the first failure since the last successful delivery.
    failing_since: Mapped[datetime | None]
    disabled_reason: Mapped[str | None]
    # No foreign key: the webhook outlives the user.
    created_by: Mapped[str | None]


class Delivery(TenantOwned, HasId, Base):
    """The delivery of one event to one endpoint. Each attempt reads the event log for its body."""

    __tablename__ = "deliveries"
    __table_args__ = (
        UniqueConstraint("event_id", "webhook_id", name="uq_deliveries_event_id_webhook_id"),
        Index("ix_deliveries_status", "webhook_id", "status", "created_at", "id"),
        Index("ix_deliveries_correlation_id", "tenant_id", "correlation_id"),
        Index(
            "ix_deliveries_tenant_id_created_at",
            "tenant_id",
            "created_at",
            postgresql_where=text("status <> 'pending'"),
        ),
    )

    # No foreign key: the row is deleted with its webhook.
    tenant_id: Mapped[str] = mapped_column()
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event_id: Mapped[str] = mapped_column(ForeignKey("event_log.id", ondelete="CASCADE"))
    event_type: Mapped[str]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    attempt: Mapped[int] = mapped_column(default=0, server_default="0")
    response_code: Mapped[int | None]
    response_time_ms: Mapped[int | None]
    error: Mapped[str | None]
    work_id: Mapped[str]
    correlation_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    next_attempt_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class DeliveryAttempt(TenantOwned, Base):
    """One request to an endpoint, and its response."""

    __tablename__ = "delivery_attempts"

    tenant_id: Mapped[str] = mapped_column()
    delivery_id: Mapped[str] = mapped_column(
        ForeignKey("deliveries.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    url: Mapped[str]
    response_code: Mapped[int | None]
    response_time_ms: Mapped[int]
    response_body: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
