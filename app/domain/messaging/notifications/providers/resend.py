"""Resend's API for sending a mail."""

from typing import ClassVar

import msgspec

from app.domain.messaging.notifications.providers import addresses, http
from app.domain.messaging.notifications.providers.hosted import HostedProvider
from app.domain.messaging.notifications.providers.protocol import (
    ApiBase,
    ChannelType,
    Line,
    Notice,
    ProviderConfig,
    Token,
)
from app.net.egress import Egress
from app.net.http_auth import bearer


class ResendConfig(ProviderConfig, frozen=True, kw_only=True):
    api_key: Token
    sender: Line = msgspec.field(name="from")
    api_base: ApiBase = "https://api.resend.com"


class Resend(HostedProvider):
    id: ClassVar[str] = "resend"
    channel_type: ClassVar[ChannelType] = "email"
    name: ClassVar[str] = "Resend"
    config: ClassVar[type[ProviderConfig]] = ResendConfig
    # Resend accepts two requests per second.
    rate_per_minute: ClassVar[int] = 120

    def find_problem(self, config: ResendConfig) -> tuple[str, str] | None:
        return addresses.find_problem(config.sender, config.to)

    async def send(self, egress: Egress, config: ResendConfig, notice: Notice) -> None:
        body = {
            "from": addresses.parse(config.sender).header,
            "to": [addresses.encode_domain(notice.recipient)],
            "subject": notice.subject,
            "text": notice.text,
            "html": notice.html,
        }
        headers = {**bearer(config.api_key), "Idempotency-Key": notice.id}
        url = self.endpoint(config, "emails")
        await http.post_json(egress, url, body, headers, lambda answer: answer["message"])
