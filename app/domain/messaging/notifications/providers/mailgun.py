"""Mailgun's messages API, version 3."""

from typing import Annotated

import msgspec
from msgspec import Meta

from app.domain.messaging.outbox.api import OutboxEgress
from app.kit.validation import describe_pattern
from app.net.http_auth import basic

from . import addresses, http
from .protocol import ApiBase, Line, Notice, ProviderConfig, Token

# It is a part of the path: no other character may be in it.
_DOMAIN = r"^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+\Z"
describe_pattern(_DOMAIN, "must be a domain name")


class MailgunConfig(ProviderConfig, frozen=True, kw_only=True):
    api_key: Token
    domain: Annotated[str, Meta(max_length=253, pattern=_DOMAIN)]
    sender: Line = msgspec.field(name="from")
    # The European region has https://api.eu.mailgun.net.
    api_base: ApiBase = "https://api.mailgun.net"


class Mailgun(http.HostedMailProvider):
    id = "mailgun"
    name = "Mailgun"
    config = MailgunConfig

    async def send(self, egress: OutboxEgress, config: MailgunConfig, notice: Notice) -> None:
        fields = {
            "from": addresses.parse(config.sender).header,
            "to": addresses.encode_domain(notice.recipient),
            "subject": notice.subject,
            "text": notice.text,
            "html": notice.html,
        }
        url = self.endpoint(config, f"v3/{config.domain}/messages")
        headers = basic("api", config.api_key)
        await http.post_form(egress, url, fields, headers, lambda answer: answer["message"])
