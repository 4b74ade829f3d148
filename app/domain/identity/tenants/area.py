from typing import Final

from app.domain.area import Area
from app.security.permissions import Permission
from db.storage_quota import UncountedTable

from .events import TenantCreated, TenantDeleted, TenantUpdated

AREA: Final = Area(
    name="tenants",
    events=(TenantCreated, TenantUpdated, TenantDeleted),
    permissions=(Permission("admin:tenants", "Manage tenants", instance_wide=True),),
    tables=(UncountedTable("tenants", "the tenant itself"),),
)
