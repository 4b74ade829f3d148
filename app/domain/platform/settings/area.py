from typing import Final

from app.domain.area import Area
from app.security.permissions import Permission

AREA: Final = Area(
    name="settings",
    permissions=(Permission("settings:read", "See what configures the instance and the tenant"),),
)
