"""Resend's API for sending a mail."""

from app.domain.messaging.outbox.api import OutboxEgress
from app.net.http_auth import bearer

from . import addresses, http
from .protocol import ApiBase, Notice


class ResendConfig(http.HostedMailConfig, frozen=True, kw_only=True):
    api_base: ApiBase = "https://api.resend.com"


class Resend(http.HostedMailProvider):
    id = "resend"
    name = "Resend"
    config = ResendConfig
    # Resend accepts two requests per second.
    rate_per_minute = 120

    async def send(self, egress: OutboxEgress, config: ResendConfig, notice: Notice) -> None:
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
