from typing import Final

from app.domain.area import Area, AreaJob, PeriodicTask
from app.domain.platform.files import maintenance
from app.domain.platform.files.events import FileCreated, FileDeleted
from app.domain.platform.files.jobs import sweep_files
from app.domain.platform.files.maintenance import SWEEP
from app.domain.platform.files.service import UploadLimit
from app.security.permissions import DEVELOPERS, Permission
from db.storage_quota import UncountedTable

AREA: Final = Area(
    name="files",
    events=(FileCreated, FileDeleted),
    permissions=(
        Permission("files:read", "Read stored files", DEVELOPERS),
        Permission("files:write", "Store and delete files", DEVELOPERS),
    ),
    jobs=(AreaJob(SWEEP, sweep_files),),
    periodic_tasks=(PeriodicTask(300.0, maintenance.accept_sweep),),
    shared=lambda _services: (UploadLimit(),),
    tables=(UncountedTable("files", "files are counted by `files.record`, with their size"),),
)
