from typing import Final

from app.domain.area import Area
from app.domain.subscriptions import queries
from app.domain.subscriptions.events import (
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionUpdated,
)
from db.storage_quota import UncountedTable

AREA: Final = Area(
    name="subscriptions",
    events=(SubscriptionCreated, SubscriptionUpdated, SubscriptionDeleted),
    on_webhook_disabled=queries.deactivate_by_webhook,
    tables=(UncountedTable("event_subscriptions", "at most 500 of a tenant"),),
)
