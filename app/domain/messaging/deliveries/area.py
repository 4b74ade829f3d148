from typing import Final

from app.domain import retention_queries
from app.domain.area import Area, AreaJob, CourierOptions
from db.retention import CASCADE_BATCH
from db.storage_quota import CountedTable, UncountedTable

from .events import WebhookDisabled
from .jobs import WEBHOOKS, on_retry_delivery
from .queries import DELIVER

COURIER: Final = CourierOptions(WEBHOOKS.load, total=500, per_tenant=120, per_lane=10)

AREA: Final = Area(
    name="deliveries",
    events=(WebhookDisabled,),
    jobs=(
        AreaJob(
            DELIVER,
            WEBHOOKS.run,
            "Deliver an event to a webhook",
            on_dead=WEBHOOKS.on_dead,
            on_retry=on_retry_delivery,
            courier=COURIER,
        ),
    ),
    retention=(
        # With their attempts. A delivery that is still pending is never that old.
        retention_queries.by_plan(
            "payloads_days",
            "deliveries",
            "created_at",
            "t.status <> 'pending'",
            batch=CASCADE_BATCH,
        ),
    ),
    spans=WEBHOOKS.read_spans,
    tables=(
        # With the row of the delivery.
        CountedTable(
            "delivery_attempts",
            "payloads",
            "coalesce(octet_length(t.response_body), 0) + coalesce(octet_length(t.error), 0)"
            " + octet_length(t.url)",
            rows=2,
        ),
        UncountedTable("deliveries", "counted with the attempts"),
        UncountedTable("webhooks", "at most 500 of a tenant"),
    ),
)
