from typing import Final

from app.domain.area import Area
from app.domain.incoming.events import (
    IncomingWebhookCreated,
    IncomingWebhookDeleted,
    IncomingWebhookReceived,
    IncomingWebhookUpdated,
)
from db.retention import RetentionRule

AREA: Final = Area(
    name="incoming",
    events=(
        IncomingWebhookCreated,
        IncomingWebhookUpdated,
        IncomingWebhookDeleted,
        IncomingWebhookReceived,
    ),
    retention=(
        RetentionRule("incoming_payloads", "t.created_at < now() - interval '90 days'"),
        # These events contain the payloads.
        RetentionRule(
            "event_log",
            f"t.type = '{IncomingWebhookReceived.type}'"
            " AND t.created_at < now() - interval '90 days'",
        ),
    ),
)
