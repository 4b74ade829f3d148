"""Slack's method chat.postMessage, for the token of a bot."""

from typing import Any, ClassVar

from app.domain.messaging.notifications.providers import http, slack
from app.domain.messaging.notifications.providers.hosted import HostedProvider
from app.domain.messaging.notifications.providers.protocol import (
    ApiBase,
    ChannelType,
    Line,
    Notice,
    ProviderConfig,
    SendFailed,
    Token,
)
from app.domain.messaging.outbox.api import OutboxEgress
from app.net.http_auth import bearer

_THROTTLED = {"ratelimited", "rate_limited", "message_limit_exceeded"}
# The errors that Slack documents as its own failures.
_TEMPORARY = {
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
}


class SlackBotConfig(ProviderConfig, frozen=True, kw_only=True):
    token: Token
    channel: Line
    api_base: ApiBase = "https://slack.com/api"


class SlackBot(HostedProvider):
    id: ClassVar[str] = "slack_bot"
    channel_type: ClassVar[ChannelType] = "team_chat"
    name: ClassVar[str] = "Slack bot"
    config: ClassVar[type[ProviderConfig]] = SlackBotConfig
    # Slack accepts one message per second and channel.
    rate_per_minute: ClassVar[int] = 60

    def recipients(self, config: SlackBotConfig) -> list[str]:
        return [config.channel]

    async def send(self, egress: OutboxEgress, config: SlackBotConfig, notice: Notice) -> None:
        body = {"channel": config.channel, "text": slack.build_text(notice)}
        url = self.endpoint(config, "chat.postMessage")
        answer = await http.post_json(
            egress, url, body, bearer(config.token), lambda answer: answer["error"]
        )
        _check(answer)


def _check(answer: Any) -> None:
    """Slack answers 200 also when it refuses a message."""
    match answer:
        case {"ok": True}:
            return
        case {"ok": False, "error": str(error)}:
            raise SendFailed(
                f"Slack answered: {error}",
                is_permanent=error not in _TEMPORARY | _THROTTLED,
                is_throttled=error in _THROTTLED,
            )
    raise SendFailed("the answer is not one of Slack")
