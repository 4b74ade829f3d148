from typing import Final

from app.domain.area import Area
from app.security.permissions import Permission
from db.retention import RetentionRule
from db.storage_quota import UncountedTable

from .events import ServiceKeyCreated, ServiceKeyRevoked

AREA: Final = Area(
    name="service_keys",
    events=(ServiceKeyCreated, ServiceKeyRevoked),
    permissions=(Permission("admin:keys", "Create, list and revoke service keys"),),
    retention=(
        # Events and audits name them for as long.
        RetentionRule(
            "service_keys", "t.revoked_at < now() - interval '400 days'", order_by="t.revoked_at"
        ),
    ),
    tables=(UncountedTable("service_keys", "small, at most 100 of a tenant are active"),),
)
