from typing import Final

from app.domain import retention_queries
from app.domain.area import Area
from app.security.permissions import DEVELOPERS, Permission
from app.security.plans import TEST_EVENTS_DAYS
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import CountedTable, UncountedTable

from .events import ChainStopped, RateLimitExceeded, SystemTest, WorkDead
from .live import LiveEvents
from .request_spans import RequestSpans
from .service import IS_SETTLED

AREA: Final = Area(
    name="events",
    events=(SystemTest, WorkDead, ChainStopped, RateLimitExceeded),
    permissions=(
        Permission("events:read", "Read the event log, event types and subscriptions", DEVELOPERS),
        Permission("events:write", "Manage subscriptions and emit test events", DEVELOPERS),
    ),
    shared=lambda services: (RequestSpans(services.db), LiveEvents(services.db)),
    retention=(
        # With their deliveries.
        retention_queries.by_plan(
            "events_days", "event_log", "created_at", IS_SETTLED, batch=CASCADE_BATCH
        ),
        RetentionRule(
            "event_log",
            f"t.test AND t.created_at < now() - interval '{TEST_EVENTS_DAYS} days'"
            f" AND {IS_SETTLED}",
            order_by="t.created_at",
            batch=CASCADE_BATCH,
        ),
        RetentionRule(
            "request_spans", "t.started_at < now() - interval '90 days'", order_by="t.started_at"
        ),
    ),
    tenant_tables=("event_log", "request_spans"),
    tables=(
        CountedTable("event_log", "events", "octet_length(t.data::text)"),
        UncountedTable("request_spans", "small, deleted after 90 days"),
    ),
)
