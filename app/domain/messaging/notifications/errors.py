from app.kit.errors import ApiError, Conflict, Invalid, NotFound, RateLimited


class ChannelNotFound(NotFound):
    code = "channel_not_found"


class ChannelTypeNotFound(NotFound):
    code = "channel_type_not_found"


class NotificationNotFound(NotFound):
    code = "notification_not_found"


class ChannelInactive(Conflict):
    code = "channel_inactive"


class InvalidConfig(Invalid):
    """`details` maps `config.<key>` to what is wrong with it, without the value."""

    code = "invalid_config"


class ChannelRateLimited(RateLimited):
    """Too many sends through one channel within a minute."""


class DeliveryFailed(ApiError):
    status, code = 502, "delivery_failed"


class UnusableConfig(Exception):
    """A stored config cannot be used; the text says why, without a value of it."""
