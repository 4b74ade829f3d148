"""Slack's incoming webhooks."""

from typing import Any, ClassVar

from yarl import URL

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.notifications.providers import http, slack
from app.domain.messaging.notifications.providers.protocol import (
    ChannelType,
    Notice,
    Provider,
    ProviderConfig,
    Secret,
)
from app.domain.messaging.outbox.api import OutboxEgress


class SlackWebhookConfig(ProviderConfig, frozen=True, kw_only=True):
    # Whoever knows the URL can post to the channel.
    webhook_url: Secret


class SlackWebhook(Provider):
    id: ClassVar[str] = "slack_webhook"
    channel_type: ClassVar[ChannelType] = "team_chat"
    name: ClassVar[str] = "Slack incoming webhook"
    config: ClassVar[type[ProviderConfig]] = SlackWebhookConfig
    # Slack accepts one message per second.
    rate_per_minute: ClassVar[int] = 60

    def urls(self, config: SlackWebhookConfig) -> dict[str, str]:
        return {"webhook_url": config.webhook_url}

    def destination(self, config: SlackWebhookConfig) -> tuple[Any, ...]:
        return (deliveries.origin_of(config.webhook_url),)

    def recipients(self, config: SlackWebhookConfig) -> list[str]:
        return [URL(config.webhook_url).host or ""]

    async def send(self, egress: OutboxEgress, config: SlackWebhookConfig, notice: Notice) -> None:
        body = {"text": slack.build_text(notice)}
        # A refusal is a plain text such as `invalid_payload`.
        await http.post_json(egress, config.webhook_url, body, {}, lambda _answer: None)
