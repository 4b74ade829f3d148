from operator import attrgetter
from typing import Final

from app.domain.area import Area, AreaJob, CourierOptions
from app.security.permissions import DEVELOPERS, Permission
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import UncountedTable

from .events import (
    ChannelCreated,
    ChannelDeleted,
    ChannelRevealed,
    ChannelUpdated,
    NotificationSent,
)
from .feed import Feed
from .jobs import CHANNELS, dispatch_message, send_digest
from .message_queries import DISPATCH, SEND, SEND_DIGEST

# A channel has more slots than `per_lane` once its first work shows that its provider allows them.
COURIER: Final = CourierOptions(
    CHANNELS.load,
    total=400,
    per_tenant=100,
    per_lane=8,
    read_lane_limit=attrgetter("max_concurrent"),
)

AREA: Final = Area(
    name="notifications",
    events=(ChannelCreated, ChannelUpdated, ChannelDeleted, ChannelRevealed, NotificationSent),
    permissions=(
        Permission("notifications:read", "See notification channels", DEVELOPERS),
        Permission(
            "notifications:write", "Manage notification channels and send notifications", DEVELOPERS
        ),
        Permission("notifications:reveal", "Read the secrets of notification channels"),
    ),
    jobs=(
        AreaJob(DISPATCH, dispatch_message, "Pass on a notification"),
        AreaJob(
            SEND,
            CHANNELS.run,
            "Send a notification through a channel",
            on_dead=CHANNELS.on_dead,
            instead="Correct the channel, and send the notification again",
            courier=COURIER,
        ),
        AreaJob(SEND_DIGEST, send_digest, "Send a digest of notifications"),
    ),
    retention=(
        # With their log. No delivery waits for more than a day.
        RetentionRule(
            "notification_channels",
            "t.deleted_at < now() - interval '3 days'",
            order_by="t.deleted_at",
            batch=1,
        ),
        # With their notifications, deliveries and log. Nothing waits that long.
        RetentionRule(
            "notification_messages",
            "t.created_at < now() - interval '90 days'",
            order_by="t.created_at",
            batch=CASCADE_BATCH,
        ),
        RetentionRule(
            "notification_digests",
            "t.due_at < now() - interval '90 days' AND t.sent_at IS NOT NULL",
            order_by="t.due_at",
            batch=CASCADE_BATCH,
        ),
    ),
    spans=CHANNELS.read_spans,
    shared=lambda services: (Feed(services.settings.redis_address),),
    tables=(
        UncountedTable("notification_channels", "at most 200 of a tenant"),
        UncountedTable(
            "notification_messages",
            "at most 10,000 characters and 16 KB of data, deleted after 90 days",
        ),
        UncountedTable("notifications", "small, deleted with the message"),
        UncountedTable("notification_deliveries", "small, deleted with the message"),
        UncountedTable("notification_log", "small, deleted with the message"),
        UncountedTable("notification_preferences", "one for each user"),
        UncountedTable("notification_channel_days", "three numbers for each day"),
        UncountedTable("notification_digests", "small, deleted after 90 days"),
        UncountedTable("notification_digest_items", "small, deleted with the digest"),
    ),
)
