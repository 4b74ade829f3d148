from typing import Final

from app.domain.area import Area
from app.security.permissions import Permission
from db.storage_quota import UncountedTable

from .events import WorkDismissed, WorkRetried

AREA: Final = Area(
    name="work",
    events=(WorkRetried, WorkDismissed),
    permissions=(
        Permission("work:read", "See work that waits, runs or has failed"),
        Permission("work:write", "Retry or dismiss work that has failed"),
    ),
    tables=(UncountedTable("work", "ids only, deleted 7 days after the work is done"),),
)
