from collections.abc import Sequence
from typing import Final

from app.domain import retention_queries
from app.domain.area import Area, AreaJob, CourierOptions, Span
from app.domain.messaging.deliveries import queries, requests
from app.domain.messaging.deliveries.events import WebhookDisabled
from app.domain.messaging.deliveries.jobs import deliver, on_dead_delivery
from app.domain.messaging.deliveries.queries import DELIVER
from app.domain.messaging.deliveries.sending import DeliveryEgress
from app.domain.platform.events.api import MAX_SPANS
from app.kit import clock
from db.retention import CASCADE_BATCH
from db.session import Tx
from db.storage_quota import CountedTable, UncountedTable


async def read_spans(
    tx: Tx, tenant: str | None, correlation_id: str, _outer: Sequence[Span]
) -> list[Span]:
    """Returns a span for each delivery, from its creation to its end, with all attempts."""
    rows = await queries.list_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    return [
        Span(
            "delivery",
            row["id"],
            row["event_id"],
            f"{row['event_type']} to {row['host']}",
            row["status"],
            row["created_at"],
            clock.milliseconds(row["created_at"], row["finished_at"] or clock.now()),
        )
        for row in rows
    ]


COURIER: Final = CourierOptions(requests.load, total=500, per_tenant=120, per_lane=10)

AREA: Final = Area(
    name="deliveries",
    events=(WebhookDisabled,),
    jobs=(AreaJob(DELIVER, deliver, on_dead=on_dead_delivery, courier=COURIER),),
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
    spans=read_spans,
    shared=lambda services: (DeliveryEgress(services.egress.guard),),
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
