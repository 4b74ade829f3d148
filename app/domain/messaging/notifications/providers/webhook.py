"""Any HTTP endpoint, with a signature as in deliveries of events."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from multidict import CIMultiDict

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.outbox.api import OutboxEgress
from app.kit import clock
from app.kit.errors import Invalid
from app.net import headers
from app.net.egress import custom_headers

from . import http
from .protocol import Notice, Provider, ProviderConfig, Secret


class WebhookChannelConfig(ProviderConfig, frozen=True, kw_only=True):
    url: Annotated[str, Meta(min_length=1, max_length=2000)]
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    secret: Secret = ""


class Webhook(Provider):
    id = "webhook"
    channel_type = "webhook"
    name = "Webhook"
    config = WebhookChannelConfig

    def find_problem(self, config: WebhookChannelConfig) -> tuple[str, str] | None:
        try:
            headers.validate(config.headers)
        except Invalid as error:
            return next(iter((error.details or {}).items()))
        return None

    def urls(self, config: WebhookChannelConfig) -> dict[str, str]:
        return {"url": config.url}

    def destination(self, config: WebhookChannelConfig) -> tuple[Any, ...]:
        return (deliveries.origin_of(config.url),)

    def recipients(self, config: WebhookChannelConfig) -> list[str]:
        return [deliveries.origin_of(config.url)]

    async def send(
        self, egress: OutboxEgress, config: WebhookChannelConfig, notice: Notice
    ) -> None:
        body = msgspec.json.encode(
            {
                "id": notice.id,
                "type": notice.type,
                "title": notice.title,
                "message": notice.text,
                "data": notice.data,
                "created_at": notice.created_at,
            }
        )
        all_headers = _build_headers(config, notice.id, body)
        await http.send(egress, config.method, config.url, body, all_headers, explain=None)


def _build_headers(config: WebhookChannelConfig, notice_id: str, body: bytes) -> CIMultiDict[str]:
    all_headers = custom_headers(config.headers)
    all_headers["Content-Type"] = "application/json"
    all_headers["X-Service-Notification-Id"] = notice_id
    if config.secret:
        timestamp = int(clock.epoch())
        all_headers["X-Service-Timestamp"] = str(timestamp)
        all_headers["X-Service-Signature"] = deliveries.sign(config.secret, timestamp, body)
    return all_headers
