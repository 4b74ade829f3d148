from typing import Final

from app.domain.area import Area
from app.domain.roles.events import RolePermissionsChanged
from app.security.permissions import Permission

AREA: Final = Area(
    name="roles",
    events=(RolePermissionsChanged,),
    permissions=(Permission("admin:roles", "Change what roles may do", instance_wide=True),),
)
