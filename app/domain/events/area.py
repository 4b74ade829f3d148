from typing import Final

from app.domain.area import Area
from app.domain.events.events import ChainStopped, RateLimitExceeded, SystemTest, WorkDead
from app.domain.events.queries import FAN_OUT, RUN_ACTION
from app.domain.events.request_spans import RequestSpans
from app.security.permissions import DEVELOPERS, Permission
from db.retention import RetentionRule

AREA: Final = Area(
    name="events",
    events=(SystemTest, WorkDead, ChainStopped, RateLimitExceeded),
    permissions=(
        Permission("events:read", "Read the event log, event types and subscriptions", DEVELOPERS),
        Permission("events:write", "Manage subscriptions and emit test events", DEVELOPERS),
    ),
    work_kinds=(FAN_OUT, RUN_ACTION),
    shared=lambda services: (RequestSpans(services.db),),
    retention=(
        RetentionRule(
            "request_spans", "t.started_at < now() - interval '90 days'", order_by="t.started_at"
        ),
    ),
    tenant_tables=("event_log", "request_spans"),
)
