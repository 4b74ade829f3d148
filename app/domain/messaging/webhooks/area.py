from typing import Final

from app.domain.area import Area
from app.security.permissions import DEVELOPERS, Permission

from .events import WebhookCreated, WebhookDeleted, WebhookUpdated

AREA: Final = Area(
    name="webhooks",
    events=(WebhookCreated, WebhookUpdated, WebhookDeleted),
    permissions=(
        Permission("webhooks:read", "See webhooks and deliveries", DEVELOPERS),
        Permission("webhooks:write", "Create, change and delete webhooks", DEVELOPERS),
    ),
)
