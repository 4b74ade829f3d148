from typing import Final

from app.domain.area import Area, PeriodicTask
from app.domain.platform.storage import service
from app.domain.platform.storage.events import StorageWarning
from app.domain.platform.storage.service import AmpleSpace
from db.storage_quota import UncountedTable

AREA: Final = Area(
    name="storage",
    events=(StorageWarning,),
    periodic_tasks=(PeriodicTask(2.0, service.add_up), PeriodicTask(10.0, service.warn)),
    shared=lambda _services: (AmpleSpace(),),
    tenant_tables=("storage_changes",),
    tables=(
        UncountedTable("storage_usage", "the counters themselves"),
        UncountedTable("storage_kinds", "the counters themselves"),
        UncountedTable("storage_changes", "the counters themselves"),
    ),
)
