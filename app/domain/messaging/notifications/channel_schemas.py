from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.domain.messaging.outbox.api import Status
from app.kit.validation import ONE_LINE

from .providers.protocol import ChannelType

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_SUMMARY: dict[str, Any] = {
    "id": f"nch_{_TAIL}",
    "name": "Operations",
    "type": "email",
    "provider": "smtp",
    "active": True,
    "created_at": "2026-01-01T12:00:00Z",
}
_CONFIG = {
    "host": "mail.example.com",
    "port": 587,
    "username": "parley",
    "from": "Parley <parley@example.com>",
    "to": ["ops@example.com"],
}
_CHANNEL = {
    **_SUMMARY,
    "config": {**_CONFIG, "password": "********"},
    "rate_limit_per_minute": None,
    "updated_at": "2026-01-01T12:00:00Z",
}
_STATS: dict[str, Any] = {
    "total_sent": 120,
    "delivered": 118,
    "failed": 2,
    "success_rate": 98.33,
    "avg_delivery_time_ms": 212.4,
}

Period = Literal["7d", "30d", "90d"]
Name = Annotated[str, Meta(max_length=100, pattern=ONE_LINE)]
RatePerMinute = Annotated[
    int,
    Meta(
        ge=1,
        le=100_000,
        description="Messages per minute; others wait. By default, the provider's own limit",
    ),
]
Config = Annotated[
    dict[str, Any],
    Meta(
        description="The keys that `GET /api/v1/notification-channels/providers` lists for the "
        "provider. Secrets are shown as ********; sent back like this, they stay unchanged"
    ),
]


class CreateChannel(msgspec.Struct, kw_only=True):
    """`provider` may be left out for the type in_app."""

    example: ClassVar[dict[str, Any]] = {
        "name": "Operations",
        "type": "email",
        "provider": "smtp",
        "config": {**_CONFIG, "password": "example-password"},
    }

    name: Name
    type: ChannelType
    provider: Annotated[str, Meta(max_length=50)] | None = None
    config: Config
    active: bool = True
    rate_limit_per_minute: RatePerMinute | None = None


class UpdateChannel(msgspec.Struct, kw_only=True):
    """`type` and `provider` are accepted as they are, so that a whole channel can be sent back."""

    example: ClassVar[dict[str, Any]] = {"active": False}

    name: Name | UnsetType = UNSET
    type: ChannelType | UnsetType = UNSET
    provider: Annotated[str, Meta(max_length=50)] | UnsetType | None = UNSET
    config: Config | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    rate_limit_per_minute: RatePerMinute | UnsetType | None = UNSET


class ChannelSummary(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _SUMMARY

    id: str
    name: str
    type: ChannelType
    provider: str
    active: bool
    created_at: datetime


class ChannelView(ChannelSummary):
    example: ClassVar[dict[str, Any]] = _CHANNEL

    config: dict[str, Any]
    rate_limit_per_minute: int | None
    updated_at: datetime


class RevealedChannel(ChannelView):
    """With its secrets."""

    example: ClassVar[dict[str, Any]] = {
        **_CHANNEL,
        "config": {**_CONFIG, "password": "example-password"},
    }


class ChannelList(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"data": [_SUMMARY], "total": 1}

    data: list[ChannelSummary]
    total: int


class ConfigKey(msgspec.Struct, omit_defaults=True):
    type: Literal["string", "integer", "boolean", "array", "object"]
    required: bool
    secret: bool = False


class ProviderView(msgspec.Struct):
    id: str
    type: ChannelType
    name: str
    config_schema: dict[str, ConfigKey]


class ProviderList(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "providers": [
            {
                "id": "slack_webhook",
                "type": "team_chat",
                "name": "Slack incoming webhook",
                "config_schema": {
                    "webhook_url": {"type": "string", "required": True, "secret": True},
                    "to": {"type": "array", "required": False},
                },
            }
        ]
    }

    providers: list[ProviderView]


class ChannelTest(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "success": True,
        "message": "Delivered to ops@example.com",
        "delivery_time_ms": 143,
    }

    success: bool
    message: str
    delivery_time_ms: int | None


class LogEntryView(msgspec.Struct):
    """One attempt. `error_code` says why it failed, or why it waits: `rate_limited`."""

    example: ClassVar[dict[str, Any]] = {
        "id": f"ntl_{_TAIL}",
        "channel_id": f"nch_{_TAIL}",
        "status": "failed",
        "subject": "A workflow failed",
        "recipient": "ops@example.com",
        "delivery_time_ms": 143,
        "created_at": "2026-01-01T12:00:00Z",
        "attempt": 1,
        "error_code": "provider_error",
        "error": "the provider answered 401: The provided authorization grant is invalid",
    }

    id: str
    channel_id: str
    status: Status
    subject: str
    recipient: str
    delivery_time_ms: int | None
    created_at: datetime
    attempt: int
    error_code: str | None
    error: str | None


class Stats(msgspec.Struct):
    """Counts messages to one recipient each, whatever number of attempts they took.
    `success_rate` is in percent.
    """

    example: ClassVar[dict[str, Any]] = _STATS

    total_sent: int
    delivered: int
    failed: int
    success_rate: float
    avg_delivery_time_ms: float


class AllStats(Stats):
    example: ClassVar[dict[str, Any]] = {**_STATS, "channels": 3, "active_channels": 2}

    channels: int
    active_channels: int


class TypeStats(Stats):
    example: ClassVar[dict[str, Any]] = {"type": "email", **_STATS}

    type: ChannelType


class ProviderStats(Stats):
    example: ClassVar[dict[str, Any]] = {"provider": "smtp", **_STATS}

    provider: str


class DayStats(Stats):
    example: ClassVar[dict[str, Any]] = {"date": "2026-01-01", **_STATS}

    date: date


class StatsBreakdown(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "period": "30d",
        "by_type": [TypeStats.example],
        "by_provider": [ProviderStats.example],
        "by_day": [DayStats.example],
    }

    period: Period
    by_type: list[TypeStats]
    by_provider: list[ProviderStats]
    by_day: list[DayStats]
