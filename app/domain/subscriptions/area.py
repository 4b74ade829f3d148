from typing import Final

from app.domain.area import Area
from app.domain.subscriptions import queries
from app.domain.subscriptions.events import (
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionUpdated,
)

AREA: Final = Area(
    name="subscriptions",
    events=(SubscriptionCreated, SubscriptionUpdated, SubscriptionDeleted),
    on_webhook_disabled=queries.deactivate_by_webhook,
)
