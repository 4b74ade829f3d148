from typing import Final

from app.jobs.work import WorkKind

# Deletes files that no row refers to.
SWEEP: Final = WorkKind("files.sweep", timeout_seconds=1800, retry_delays=(60,))
