"""Slack: incoming webhooks, and the method chat.postMessage for the token of a bot."""

import re
from typing import Any

from yarl import URL

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.outbox.api import OutboxEgress
from app.net.http_auth import bearer

from . import http
from .protocol import ApiBase, Line, Notice, Provider, ProviderConfig, Secret, SendFailed, Token

# Slack has no escape for its marks of bold, struck and code text: similar characters replace them.
_MARKS = str.maketrans(
    {
        "*": "\N{ASTERISK OPERATOR}",
        "~": "\N{TILDE OPERATOR}",
        "`": "\N{MODIFIER LETTER GRAVE ACCENT}",
    }
)
# Within a word an underscore is no mark.
_ITALIC_MARK = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_THROTTLED = {"ratelimited", "rate_limited", "message_limit_exceeded"}
# The errors that Slack documents as its own failures.
_TEMPORARY = {
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
}


def build_text(notice: Notice) -> str:
    """Returns the title in bold, then the message, which can mention nobody and hide no link."""
    title = _ITALIC_MARK.sub("\N{MODIFIER LETTER LOW MACRON}", notice.subject.translate(_MARKS))
    return "\n".join(filter(None, [f"*{_escape(title)}*" if title else "", _escape(notice.text)]))


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class SlackWebhookConfig(ProviderConfig, frozen=True, kw_only=True):
    # Whoever knows the URL can post to the channel.
    webhook_url: Secret


class SlackWebhook(Provider):
    id = "slack_webhook"
    channel_type = "team_chat"
    name = "Slack incoming webhook"
    config = SlackWebhookConfig
    # Slack accepts one message per second.
    rate_per_minute = 60

    def urls(self, config: SlackWebhookConfig) -> dict[str, str]:
        return {"webhook_url": config.webhook_url}

    def destination(self, config: SlackWebhookConfig) -> tuple[Any, ...]:
        return (deliveries.origin_of(config.webhook_url),)

    def recipients(self, config: SlackWebhookConfig) -> list[str]:
        return [URL(config.webhook_url).host or ""]

    async def send(self, egress: OutboxEgress, config: SlackWebhookConfig, notice: Notice) -> None:
        body = {"text": build_text(notice)}
        # A refusal is a plain text such as `invalid_payload`.
        await http.post_json(egress, config.webhook_url, body, {}, lambda _answer: None)


class SlackBotConfig(ProviderConfig, frozen=True, kw_only=True):
    token: Token
    channel: Line
    api_base: ApiBase = "https://slack.com/api"


class SlackBot(http.HostedProvider):
    id = "slack_bot"
    channel_type = "team_chat"
    name = "Slack bot"
    config = SlackBotConfig
    # Slack accepts one message per second and channel.
    rate_per_minute = 60

    def recipients(self, config: SlackBotConfig) -> list[str]:
        return [config.channel]

    async def send(self, egress: OutboxEgress, config: SlackBotConfig, notice: Notice) -> None:
        body = {"channel": config.channel, "text": build_text(notice)}
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
