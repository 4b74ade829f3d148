from typing import Annotated, Any

from app.domain.area import Event, example


class _IncomingWebhookEvent(Event):
    incoming_webhook_id: Annotated[str, example("inh_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Orders")]


class IncomingWebhookCreated(_IncomingWebhookEvent):
    """An incoming webhook was added."""

    type = "system.incoming_webhook.created"


class IncomingWebhookUpdated(_IncomingWebhookEvent):
    """An incoming webhook was changed."""

    type = "system.incoming_webhook.updated"

    changed: Annotated[list[str], example(["name"])]


class IncomingWebhookDeleted(_IncomingWebhookEvent):
    """An incoming webhook was deleted."""

    type = "system.incoming_webhook.deleted"


class IncomingWebhookReceived(_IncomingWebhookEvent):
    """A payload came in and was stored.

    `payload` is null for a payload of more than 32 KiB, which is only in the webhook's log, under
    this event's id.
    """

    type = "system.incoming_webhook.received"

    size_bytes: Annotated[int, example(14)]
    payload: Annotated[Any, example({"order": 4711})]
    replay_of: Annotated[str | None, example("evt_01k9x3m7e8c0v2q4r6t8w0y2a4")] = None
