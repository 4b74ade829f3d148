"""Notifications within Parley."""

from typing import Any, ClassVar

from app.domain.notifications.providers.protocol import ChannelType, Provider, ProviderConfig


class InAppConfig(ProviderConfig, frozen=True, kw_only=True):
    """`to` has ids of users."""


class InApp(Provider):
    """It has no `send`: such a notification is a row, written in the caller's transaction."""

    id: ClassVar[str] = "in_app"
    channel_type: ClassVar[ChannelType] = "in_app"
    name: ClassVar[str] = "In-app"
    config: ClassVar[type[ProviderConfig]] = InAppConfig

    def destination(self, config: InAppConfig) -> tuple[Any, ...]:
        del config
        return ()
