"""SendGrid's mail send API, version 3."""

from app.domain.messaging.outbox.api import OutboxEgress
from app.net.http_auth import bearer

from . import addresses, http
from .protocol import ApiBase, Notice


class SendGridConfig(http.HostedMailConfig, frozen=True, kw_only=True):
    api_base: ApiBase = "https://api.sendgrid.com"


class SendGrid(http.HostedMailProvider):
    id = "sendgrid"
    name = "SendGrid"
    config = SendGridConfig

    async def send(self, egress: OutboxEgress, config: SendGridConfig, notice: Notice) -> None:
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
