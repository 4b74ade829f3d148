from typing import Annotated, Literal

from app.domain.area import Event, example


class WebhookDisabled(Event):
    """An endpoint gets no more deliveries: it answered 410, or failed for five days.

    `subscription_id` names the subscription whose address it was, `owner_id` who created it.
    """

    type = "system.webhook.disabled"

    webhook_id: Annotated[str, example("whk_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    url: Annotated[str, example("https://example.com")]
    reason: Annotated[Literal["gone", "failing"], example("gone")]
    subscription_id: Annotated[str | None, example("sub_01k9x3m7e8c0v2q4r6t8w0y2a4")] = None
    owner_id: Annotated[str | None, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")] = None
