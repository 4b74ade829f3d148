from typing import Final

from app.domain.area import Area, PeriodicTask
from db.storage_quota import UncountedTable

from . import service
from .events import StorageWarning
from .service import AmpleSpace

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
