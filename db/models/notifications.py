from datetime import date, datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class NotificationChannel(TenantOwned, HasId, Timestamps, Base):
    """A way to reach people outside of Parley. `config` seals what its provider needs."""

    __tablename__ = "notification_channels"
    __table_args__ = (
        Index("ix_notification_channels_type", "tenant_id", "type", "created_at", "id"),
        Index(
            "ix_notification_channels_deleted_at",
            "deleted_at",
            postgresql_where=text("deleted_at IS NOT NULL"),
        ),
    )

    name: Mapped[str]
    type: Mapped[str]
    provider: Mapped[str]
    config: Mapped[bytes] = mapped_column(Sealed)
    active: Mapped[bool] = mapped_column(default=True, server_default="true")
    # None is the limit of the provider.
    rate_limit_per_minute: Mapped[int | None]
    # No foreign key: the channel outlives the user.
    created_by: Mapped[str | None]
    # A deleted channel is kept until its pending deliveries went through another one.
    deleted_at: Mapped[datetime | None]


class NotificationMessage(TenantOwned, HasId, Base):
    """What is said, once for all recipients. `recipients` says who they are: users, a role, or a
    channel. The work of its dispatch turns them into rows.
    """

    __tablename__ = "notification_messages"
    __table_args__ = (
        UniqueConstraint("occasion", "source", name="uq_notification_messages_occasion_source"),
        Index("ix_notification_messages_tenant_id", "tenant_id"),
        Index("ix_notification_messages_created_at", "created_at"),
        # The messages of digests.
        Index(
            "ix_notification_messages_digest",
            "source",
            postgresql_where=text("starts_with(source, 'ntg_')"),
        ),
    )

    type: Mapped[str]
    title: Mapped[str]
    message: Mapped[str]
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    recipients: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # The event, or the id of the message itself when no event caused it.
    occasion: Mapped[str]
    # The rule or the subscription that an event triggered, or the message itself.
    source: Mapped[str]
    # The last user that it was dispatched to; "" before the first one.
    dispatched_to: Mapped[str] = mapped_column(default="", server_default="")
    # When the team chat gets it, as far as the users are known that it was dispatched to.
    team_chat: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # True when the area that emitted the event has sent a mail about it.
    is_mailed: Mapped[bool] = mapped_column(default=False, server_default="false")
    correlation_id: Mapped[str]
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Notification(TenantOwned, HasId, Base):
    """A message in a user's notification center."""

    __tablename__ = "notifications"
    __table_args__ = (
        UniqueConstraint("message_id", "user_id", name="uq_notifications_message_id_user_id"),
        # With the tenant, so that rows are counted without reading the table.
        Index(
            "ix_notifications_user_id_created_at",
            "user_id",
            "created_at",
            "id",
            postgresql_include=["tenant_id"],
        ),
        Index(
            "ix_notifications_user_id_type",
            "user_id",
            "type",
            "read",
            "created_at",
            "id",
            postgresql_include=["tenant_id"],
        ),
    )

    # No foreign key: the row is deleted with its message.
    tenant_id: Mapped[str] = mapped_column()
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    message_id: Mapped[str] = mapped_column(
        ForeignKey("notification_messages.id", ondelete="CASCADE")
    )
    type: Mapped[str]
    read: Mapped[bool] = mapped_column(default=False, server_default="false")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class NotificationPreferences(TenantOwned, Timestamps, Base):
    """What a user has changed, by notification type."""

    __tablename__ = "notification_preferences"

    user_id: Mapped[str] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    # No foreign key: the row is deleted with its user.
    tenant_id: Mapped[str] = mapped_column()
    preferences: Mapped[dict[str, Any]] = mapped_column(JSONB)


class NotificationDelivery(TenantOwned, HasId, Base):
    """A message on its way to one recipient through one channel. When all attempts fail, another
    delivery with the same `first_id` goes through the next channel of the type.
    """

    __tablename__ = "notification_deliveries"
    __table_args__ = (
        UniqueConstraint(
            "occasion",
            "channel_id",
            "recipient",
            name="uq_notification_deliveries_occasion_channel_id_recipient",
        ),
        Index("ix_notification_deliveries_message_id", "message_id"),
        Index("ix_notification_deliveries_channel_id", "channel_id", "status"),
        Index("ix_notification_deliveries_first_id", "first_id"),
        Index("ix_notification_deliveries_correlation_id", "tenant_id", "correlation_id"),
    )

    # No foreign key: the row is deleted with its message.
    tenant_id: Mapped[str] = mapped_column()
    message_id: Mapped[str] = mapped_column(
        ForeignKey("notification_messages.id", ondelete="CASCADE")
    )
    channel_id: Mapped[str] = mapped_column(
        ForeignKey("notification_channels.id", ondelete="CASCADE")
    )
    # The user whose address the recipient is, if it is one.
    user_id: Mapped[str | None]
    first_id: Mapped[str]
    occasion: Mapped[str]
    recipient: Mapped[str]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    attempt: Mapped[int] = mapped_column(default=0, server_default="0")
    # Since when the provider refuses it because of too many messages.
    throttled_at: Mapped[datetime | None]
    # A test is sent once, and never through another channel.
    is_test: Mapped[bool] = mapped_column(default=False, server_default="false")
    work_id: Mapped[str]
    correlation_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]


class NotificationLogEntry(TenantOwned, HasId, Base):
    """One attempt. The row of the next attempt exists, as pending, before it is made."""

    __tablename__ = "notification_log"
    __table_args__ = (
        UniqueConstraint("delivery_id", "number", name="uq_notification_log_delivery_id_number"),
        Index("ix_notification_log_channel_id", "channel_id", "status", "created_at", "id"),
    )

    # No foreign keys: the row is deleted with its delivery.
    tenant_id: Mapped[str] = mapped_column()
    channel_id: Mapped[str]
    delivery_id: Mapped[str] = mapped_column(
        ForeignKey("notification_deliveries.id", ondelete="CASCADE")
    )
    number: Mapped[int]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    delivery_time_ms: Mapped[int | None]
    error_code: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class NotificationChannelDay(TenantOwned, Base):
    """How many deliveries of a channel ended on one day, and the time that successful ones took."""

    __tablename__ = "notification_channel_days"

    # No foreign key: the row is deleted with its channel.
    tenant_id: Mapped[str] = mapped_column()
    channel_id: Mapped[str] = mapped_column(
        ForeignKey("notification_channels.id", ondelete="CASCADE"), primary_key=True
    )
    day: Mapped[date] = mapped_column(primary_key=True)
    delivered: Mapped[int] = mapped_column(default=0, server_default="0")
    failed: Mapped[int] = mapped_column(default=0, server_default="0")
    total_ms: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class NotificationDigest(TenantOwned, HasId, Base):
    """Messages of one type that a user gets together when `due_at` is past. A team chat, which many
    users share, gets one without a user.
    """

    __tablename__ = "notification_digests"
    __table_args__ = (
        Index(
            "uq_notification_digests_due",
            "tenant_id",
            func.coalesce(text("user_id"), text("''")),
            "type",
            "channel_type",
            "due_at",
            unique=True,
            postgresql_where=text("sent_at IS NULL"),
        ),
        Index("ix_notification_digests_tenant_id", "tenant_id"),
        Index("ix_notification_digests_user_id", "user_id"),
        Index("ix_notification_digests_due_at", "due_at"),
    )

    user_id: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    type: Mapped[str]
    channel_type: Mapped[str]
    due_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]


class NotificationDigestItem(TenantOwned, Base):
    __tablename__ = "notification_digest_items"
    __table_args__ = (Index("ix_notification_digest_items_message_id", "message_id"),)

    # No foreign key: the row is deleted with its digest.
    tenant_id: Mapped[str] = mapped_column()
    digest_id: Mapped[str] = mapped_column(
        ForeignKey("notification_digests.id", ondelete="CASCADE"), primary_key=True
    )
    message_id: Mapped[str] = mapped_column(
        ForeignKey("notification_messages.id", ondelete="CASCADE"), primary_key=True
    )
