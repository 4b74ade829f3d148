from typing import Final

from app.domain.area import Area
from app.security.permissions import Permission
from db.storage_quota import UncountedTable

from .events import RolePermissionsChanged

AREA: Final = Area(
    name="roles",
    events=(RolePermissionsChanged,),
    permissions=(Permission("admin:roles", "Change the permissions of roles", instance_wide=True),),
    tables=(UncountedTable("role_grants", "belongs to the instance, not to a tenant"),),
)
