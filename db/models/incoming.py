from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, func
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class IncomingWebhook(TenantOwned, HasId, Timestamps, Base):
    """A public URL that accepts payloads of other services, signed or unsigned."""

    __tablename__ = "incoming_webhooks"
    __table_args__ = (
        Index("ix_incoming_webhooks_tenant_id_created_at", "tenant_id", "created_at", "id"),
    )

    name: Mapped[str]
    # The public URL names no tenant, so the slug is unique in the instance.
    slug: Mapped[str] = mapped_column(unique=True)
    workflow_id: Mapped[str | None]
    active: Mapped[bool] = mapped_column(default=True, server_default="true")
    scheme: Mapped[str | None]
    header: Mapped[str | None]
    secret: Mapped[bytes | None] = mapped_column(Sealed)


class IncomingPayload(TenantOwned, HasId, Base):
    """A received payload, unchanged. Its id is that of the event for it."""

    __tablename__ = "incoming_payloads"
    __table_args__ = (
        Index("ix_incoming_payloads_webhook_id", "webhook_id", "created_at", "id"),
        Index("ix_incoming_payloads_tenant_id_created_at", "tenant_id", "created_at"),
    )

    webhook_id: Mapped[str] = mapped_column(ForeignKey("incoming_webhooks.id", ondelete="CASCADE"))
    body: Mapped[bytes] = mapped_column(LargeBinary)
    headers: Mapped[dict[str, Any]] = mapped_column(JSON)
    source_ip: Mapped[str]
    workflow_execution_id: Mapped[str | None]
    replay_of: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
