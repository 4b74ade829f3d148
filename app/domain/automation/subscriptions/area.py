from typing import Final

from app.domain.area import Area, AreaJob
from app.domain.platform.events.api import FAN_OUT, RUN_ACTION
from db.storage_quota import UncountedTable

from . import jobs, queries
from .events import SubscriptionCreated, SubscriptionDeleted, SubscriptionUpdated

AREA: Final = Area(
    name="subscriptions",
    jobs=(
        AreaJob(FAN_OUT, jobs.fan_out_event, "Pass on an event"),
        AreaJob(RUN_ACTION, jobs.run_subscription_action, "Run the action of a subscription"),
    ),
    events=(SubscriptionCreated, SubscriptionUpdated, SubscriptionDeleted),
    on_webhook_disabled=queries.deactivate_by_webhook,
    tables=(UncountedTable("event_subscriptions", "at most 500 of a tenant"),),
)
