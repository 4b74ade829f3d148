from typing import Final

from app.domain import retention_queries
from app.domain.area import Area
from app.domain.platform.events import api as events
from db.retention import CASCADE_BATCH
from db.storage_quota import CountedTable, UncountedTable

from .events import (
    IncomingWebhookCreated,
    IncomingWebhookDeleted,
    IncomingWebhookReceived,
    IncomingWebhookUpdated,
)

AREA: Final = Area(
    name="incoming",
    events=(
        IncomingWebhookCreated,
        IncomingWebhookUpdated,
        IncomingWebhookDeleted,
        IncomingWebhookReceived,
    ),
    retention=(
        retention_queries.by_plan(
            "payloads_days", "incoming_payloads", "created_at", events.IS_SETTLED
        ),
        # These events contain the payloads. Their deliveries are deleted with them.
        retention_queries.by_plan(
            "payloads_days",
            "event_log",
            "created_at",
            f"t.type = '{IncomingWebhookReceived.type}' AND {events.IS_SETTLED}",
            batch=CASCADE_BATCH,
        ),
    ),
    tables=(
        CountedTable(
            "incoming_payloads", "payloads", "octet_length(t.body) + octet_length(t.headers::text)"
        ),
        UncountedTable("incoming_webhooks", "at most 500 of a tenant"),
    ),
)
