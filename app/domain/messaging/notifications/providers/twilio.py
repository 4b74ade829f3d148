"""Twilio's messages API."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from app.domain.messaging.outbox.api import OutboxEgress
from app.kit.validation import describe_pattern
from app.net.http_auth import basic

from . import http, sms
from .protocol import ApiBase, Line, Notice, ProviderConfig, Token

# It is a part of the path: no other character may be in it.
_ACCOUNT_SID = r"^AC[0-9a-fA-F]{32}\Z"
describe_pattern(_ACCOUNT_SID, "must be AC and 32 hexadecimal digits")
_SERVICE_SID = re.compile(r"MG[0-9a-fA-F]{32}\Z")


class TwilioConfig(ProviderConfig, frozen=True, kw_only=True):
    """`from` is a phone number, a name, or the id of a messaging service."""

    account_sid: Annotated[str, Meta(pattern=_ACCOUNT_SID)]
    auth_token: Token
    sender: Line = msgspec.field(name="from")
    api_base: ApiBase = "https://api.twilio.com"


class Twilio(http.HostedProvider):
    id = "twilio"
    channel_type = "sms"
    name = "Twilio"
    config = TwilioConfig
    # An ordinary number sends one SMS per second.
    rate_per_minute = 60

    def find_problem(self, config: TwilioConfig) -> tuple[str, str] | None:
        return sms.find_problem(config.to)

    async def send(self, egress: OutboxEgress, config: TwilioConfig, notice: Notice) -> None:
        is_service = _SERVICE_SID.match(config.sender) is not None
        fields = {
            "To": f"+{sms.strip_plus(notice.recipient)}",
            "MessagingServiceSid" if is_service else "From": config.sender,
            "Body": sms.build_text(notice),
        }
        url = self.endpoint(config, f"2010-04-01/Accounts/{config.account_sid}/Messages.json")
        headers = basic(config.account_sid, config.auth_token)
        await http.post_form(egress, url, fields, headers, lambda answer: answer["message"])
