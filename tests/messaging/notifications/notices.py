"""Notices, and one way to send them with each provider."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.messaging.notifications import configs
from app.domain.messaging.notifications.providers.protocol import Notice, SendFailed
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.domain.messaging.outbox.egress import OutboxEgress

RECIPIENTS = {"email": "bob@example.com", "sms": "+447700900000"}


def build_notice(**values: Any) -> Notice:
    defaults: dict[str, Any] = {
        "id": "ntd_0123456789",
        "recipient": "bob@example.com",
        "type": "workflow_failed",
        "title": "Import failed",
        "text": "Row 7 has no name.",
        "html": "<p>Row 7 has no name.</p>",
        "data": {"row": 7},
        "created_at": datetime(2026, 11, 16, 12, 30, tzinfo=UTC),
    }
    return Notice(**defaults | values)


async def send(
    egress: OutboxEgress, provider_id: str, values: dict[str, Any], **notice: Any
) -> None:
    """Sends a notice to a recipient that fits the provider, with a validated config."""
    provider = PROVIDERS[provider_id]
    config = configs.validate(provider, values, egress.guard)
    recipient = RECIPIENTS.get(provider.channel_type, "nobody")
    await provider.send(egress, config, build_notice(**{"recipient": recipient} | notice))


async def fail(
    egress: OutboxEgress, provider_id: str, values: dict[str, Any], **notice: Any
) -> SendFailed:
    """Returns the failure of a notice that must not be accepted."""
    with pytest.raises(SendFailed) as failure:
        await send(egress, provider_id, values, **notice)
    return failure.value
