from typing import Annotated

from app.domain.area import Event, example

# In each event `url` is the endpoint's origin: the path often contains a key.


class _WebhookEvent(Event):
    webhook_id: Annotated[str, example("whk_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    url: Annotated[str, example("https://example.com")]


class WebhookCreated(_WebhookEvent):
    """An outgoing webhook was added."""

    type = "system.webhook.created"

    events: Annotated[list[str], example(["agent.created"])]


class WebhookUpdated(_WebhookEvent):
    """An outgoing webhook was changed, or its secret rotated."""

    type = "system.webhook.updated"

    changed: Annotated[list[str], example(["url"])]


class WebhookDeleted(_WebhookEvent):
    """An outgoing webhook was deleted."""

    type = "system.webhook.deleted"
