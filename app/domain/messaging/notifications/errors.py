from app.kit.errors import ApiError, Conflict, Invalid, NotFound, RateLimited


class ChannelNotFound(NotFound, code="channel_not_found"): ...


class ChannelTypeNotFound(NotFound, code="channel_type_not_found"): ...


class NotificationNotFound(NotFound, code="notification_not_found"): ...


class ChannelInactive(Conflict, code="channel_inactive"): ...


class InvalidConfig(Invalid, code="invalid_config"):
    """`details` maps `config.<key>` to what is wrong with it, without the value."""


class ChannelRateLimited(RateLimited):
    """Too many sends through one channel within a minute."""


class DeliveryFailed(ApiError, status=502, code="delivery_failed"): ...


class UnusableConfig(Exception):
    """A stored config cannot be used; the text says why, without a value of it."""
