"""Notifications within Parley."""

from typing import Any

from app.domain.messaging.outbox.api import OutboxEgress

from .protocol import Notice, Provider, ProviderConfig, SendFailed


class InAppConfig(ProviderConfig, frozen=True, kw_only=True):
    """`to` has ids of users."""


class InApp(Provider):
    """Its messages are rows of the notification center, which the dispatch writes."""

    id = "in_app"
    channel_type = "in_app"
    name = "In-app"
    config = InAppConfig

    def destination(self, config: InAppConfig) -> tuple[Any, ...]:
        del config
        return ()

    async def send(self, egress: OutboxEgress, config: InAppConfig, notice: Notice) -> None:
        del egress, config, notice
        raise SendFailed("messages to the notification center are not sent", is_permanent=True)
