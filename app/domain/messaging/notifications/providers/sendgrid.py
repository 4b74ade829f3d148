"""SendGrid's mail send API, version 3."""

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


class SendGridConfig(ProviderConfig, frozen=True, kw_only=True):
    api_key: Token
    sender: Line = msgspec.field(name="from")
    api_base: ApiBase = "https://api.sendgrid.com"


class SendGrid(HostedProvider):
    id: ClassVar[str] = "sendgrid"
    channel_type: ClassVar[ChannelType] = "email"
    name: ClassVar[str] = "SendGrid"
    config: ClassVar[type[ProviderConfig]] = SendGridConfig

    def find_problem(self, config: SendGridConfig) -> tuple[str, str] | None:
        return addresses.find_problem(config.sender, config.to)

    async def send(self, egress: Egress, config: SendGridConfig, notice: Notice) -> None:
        sender = addresses.parse(config.sender)
        body = {
            "personalizations": [{"to": [{"email": addresses.encode_domain(notice.recipient)}]}],
            "from": {"email": sender.address, **({"name": sender.name} if sender.name else {})},
            "subject": notice.subject,
            "content": [
                {"type": "text/plain", "value": notice.text},
                {"type": "text/html", "value": notice.html},
            ],
        }
        url = self.endpoint(config, "v3/mail/send")
        headers = bearer(config.api_key)
        await http.post_json(
            egress, url, body, headers, lambda answer: answer["errors"][0]["message"]
        )
