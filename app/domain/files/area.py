from typing import Final

from app.domain.area import Area
from app.security.permissions import DEVELOPERS, Permission

AREA: Final = Area(
    name="files",
    permissions=(
        Permission("files:read", "Read stored files", DEVELOPERS),
        Permission("files:write", "Store and delete files", DEVELOPERS),
    ),
)
