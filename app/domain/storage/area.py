from typing import Final

from app.domain.area import Area, PeriodicTask
from app.domain.storage import service
from app.domain.storage.events import StorageWarning
from app.domain.storage.service import AmpleSpace

AREA: Final = Area(
    name="storage",
    events=(StorageWarning,),
    periodic_tasks=(PeriodicTask(2.0, service.add_up), PeriodicTask(10.0, service.warn)),
    shared=lambda _services: (AmpleSpace(),),
    tenant_tables=("storage_changes",),
)
