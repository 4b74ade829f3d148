from typing import Any, ClassVar, Literal

from app.domain.area import Event


class WebhookDisabled(Event):
    """`subscription_id` names the subscription whose address it was, `owner_id` who created it."""

    type: ClassVar[str] = "system.webhook.disabled"
    description: ClassVar[str] = (
        "An endpoint gets no more deliveries: it answered 410, or failed for five days"
    )
    example: ClassVar[dict[str, Any]] = {
        "webhook_id": "whk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "url": "https://example.com",
        "reason": "gone",
        "subscription_id": "sub_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "owner_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    webhook_id: str
    url: str
    reason: Literal["gone", "failing"]
    subscription_id: str | None = None
    owner_id: str | None = None
