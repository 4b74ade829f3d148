from typing import Final

from app.domain.area import Area
from app.security.permissions import Permission

AREA: Final = Area(
    name="work",
    permissions=(
        Permission("work:read", "See work that waits, runs or has failed"),
        Permission("work:write", "Retry or dismiss work that has failed"),
    ),
)
