from typing import Final

from app.domain.area import Area
from app.domain.events import service as events
from app.domain.incoming.events import (
    IncomingWebhookCreated,
    IncomingWebhookDeleted,
    IncomingWebhookReceived,
    IncomingWebhookUpdated,
)
from db.retention import CASCADE_BATCH, RetentionRule

AREA: Final = Area(
    name="incoming",
    events=(
        IncomingWebhookCreated,
        IncomingWebhookUpdated,
        IncomingWebhookDeleted,
        IncomingWebhookReceived,
    ),
    retention=(
        RetentionRule(
            "incoming_payloads",
            f"t.created_at < now() - interval '90 days' AND {events.IS_SETTLED}",
            order_by="t.created_at",
        ),
        # These events contain the payloads. Their deliveries are deleted with them.
        RetentionRule(
            "event_log",
            f"t.type = '{IncomingWebhookReceived.type}'"
            f" AND t.created_at < now() - interval '90 days' AND {events.IS_SETTLED}",
            order_by="t.created_at",
            batch=CASCADE_BATCH,
        ),
    ),
)
