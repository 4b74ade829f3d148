from typing import Final

from app.domain.area import Area, PeriodicTask
from app.domain.files import maintenance
from app.domain.files.events import FileCreated, FileDeleted
from app.domain.files.upload_limit import UploadLimit
from app.domain.files.work_kinds import SWEEP
from app.security.permissions import DEVELOPERS, Permission
from db.storage_quota import UncountedTable

AREA: Final = Area(
    name="files",
    events=(FileCreated, FileDeleted),
    permissions=(
        Permission("files:read", "Read stored files", DEVELOPERS),
        Permission("files:write", "Store and delete files", DEVELOPERS),
    ),
    work_kinds=(SWEEP,),
    periodic_tasks=(PeriodicTask(300.0, maintenance.accept_sweep),),
    shared=lambda _services: (UploadLimit(),),
    tables=(UncountedTable("files", "files are counted by `files.record`, with their size"),),
)
