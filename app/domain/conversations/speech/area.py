from datetime import timedelta
from typing import Final

from app.domain.area import AgentDeletion, Area, AreaJob, PeriodicTask
from app.kit import clock
from app.services import Services
from db.retention import RetentionRule
from db.storage_quota import UncountedTable

from . import speech_jobs
from .jobs import on_dead_speech, run_speech
from .moonshine import Recogniser

_EVERY_SECONDS = 600.0
_KEEP = timedelta(days=1)


async def _cancel_jobs(deletion: AgentDeletion) -> None:
    await speech_jobs.cancel_all(
        deletion.tx, deletion.services, deletion.tenant_id, deletion.agent_ids
    )


async def _delete_old_files(services: Services) -> None:
    """Requests delete their files themselves. These are left over from processes that died."""
    await services.files.delete_older(speech_jobs.FOLDER, clock.now() - _KEEP)


AREA: Final = Area(
    name="speech",
    jobs=(
        AreaJob(
            speech_jobs.RUN_SPEECH,
            run_speech,
            "Transcribe a recording or speak a text",
            on_dead=on_dead_speech,
            instead="Send the recording or the text again",
        ),
    ),
    retention=(
        RetentionRule(
            "speech_jobs", "t.created_at < now() - interval '1 day'", order_by="t.created_at"
        ),
    ),
    periodic_tasks=(PeriodicTask(_EVERY_SECONDS, _delete_old_files),),
    shared=lambda _services: (Recogniser(),),
    before_agents_deleted=_cancel_jobs,
    tables=(
        UncountedTable("speech_jobs", "deleted by the request that waits for it, or after a day"),
    ),
)
