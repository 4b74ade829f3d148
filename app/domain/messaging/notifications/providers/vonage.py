"""Vonage's SMS API."""

from typing import Any

import msgspec

from app.domain.messaging.outbox.api import OutboxEgress
from app.kit.texts import storable

from . import http, sms
from .protocol import ApiBase, Line, Notice, ProviderConfig, Secret, SendFailed

_ACCEPTED = "0"
_THROTTLED = "1"
# Too many requests, and an error of Vonage's own.
_TEMPORARY = {_THROTTLED, "5"}


class VonageConfig(ProviderConfig, frozen=True, kw_only=True):
    api_key: Line
    api_secret: Secret
    sender: Line = msgspec.field(name="from")
    api_base: ApiBase = "https://rest.nexmo.com"


class Vonage(http.HostedProvider):
    id = "vonage"
    channel_type = "sms"
    name = "Vonage"
    config = VonageConfig

    def find_problem(self, config: VonageConfig) -> tuple[str, str] | None:
        return sms.find_problem(config.to)

    async def send(self, egress: OutboxEgress, config: VonageConfig, notice: Notice) -> None:
        text = sms.build_text(notice)
        fields = {
            "api_key": config.api_key,
            "api_secret": config.api_secret,
            "from": sms.strip_plus(config.sender),
            "to": sms.strip_plus(notice.recipient),
            "text": text,
            "type": "text" if _is_gsm(text) else "unicode",
        }
        url = self.endpoint(config, "sms/json")
        _check(await http.post_form(egress, url, fields, {}, _explain))


def _is_gsm(text: str) -> bool:
    """True for ASCII without the one printable character that is not in the alphabet of GSM."""
    return text.isascii() and "`" not in text


def _explain(answer: Any) -> object:
    return answer["messages"][0]["error-text"]


def _check(answer: Any) -> None:
    """Vonage answers 200 also when it refuses a message. A long text has several parts."""
    match answer:
        case {"messages": [_, *_] as parts}:
            # Another try would repeat the parts that were accepted.
            is_partial = any(_is_accepted(part) for part in parts)
            for part in parts:
                _check_part(part, is_partial=is_partial)
        case _:
            raise SendFailed("the answer is not one of Vonage")


def _is_accepted(part: Any) -> bool:
    return isinstance(part, dict) and part.get("status") == _ACCEPTED


def _check_part(part: Any, *, is_partial: bool) -> None:
    if _is_accepted(part):
        return
    match part:
        case {"status": str(status)}:
            text = storable(str(part.get("error-text", "")))
            raise SendFailed(
                f"Vonage answered status {status}: {text}".removesuffix(": "),
                is_permanent=is_partial or status not in _TEMPORARY,
                is_throttled=status == _THROTTLED and not is_partial,
            )
    raise SendFailed("the answer is not one of Vonage")
