from typing import Final

from app.domain.area import Area, AreaJob, PeriodicTask
from app.security.permissions import DEVELOPERS, Permission
from db.storage_quota import UncountedTable

from . import maintenance
from .events import FileCreated, FileDeleted
from .jobs import sweep_files
from .maintenance import SWEEP
from .service import UploadLimit

AREA: Final = Area(
    name="files",
    events=(FileCreated, FileDeleted),
    permissions=(
        Permission("files:read", "Read stored files", DEVELOPERS),
        Permission("files:write", "Store and delete files", DEVELOPERS),
    ),
    jobs=(AreaJob(SWEEP, sweep_files, "Delete files that nobody needs"),),
    periodic_tasks=(PeriodicTask(300.0, maintenance.accept_sweep),),
    shared=lambda _services: (UploadLimit(),),
    tables=(UncountedTable("files", "files are counted by `files.record`, with their size"),),
)
