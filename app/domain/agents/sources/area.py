from typing import Final

from app.domain.area import AgentDeletion, Area, AreaJob, PeriodicTask
from app.domain.platform.files import api as files
from app.jobs import work
from db.storage_quota import CountedTable, UncountedTable

from . import entry_queries, jobs, queries, service
from .events import SourceChangesFound, SourceFailed, SourceSynced
from .work_kinds import APPLY, SYNC


async def _stop_syncs(deletion: AgentDeletion) -> None:
    """Stops the syncs of agents, and deletes the files of changes that wait."""
    tx, tenant_id, agent_ids = deletion.tx, deletion.tenant_id, deletion.agent_ids
    work_ids = await queries.list_work(tx, tenant_id, agent_ids)
    await work.cancel_many(tx, deletion.services.doorbell, tenant_id, work_ids)
    keys = await entry_queries.list_file_keys(tx, tenant_id, agent_ids=agent_ids)
    await files.release(tx, deletion.services, tenant_id, keys)


AREA: Final = Area(
    name="sources",
    events=(SourceSynced, SourceChangesFound, SourceFailed),
    jobs=(
        AreaJob(
            SYNC,
            jobs.sync_source,
            "Read a source of documents",
            on_dead=jobs.on_dead_sync,
            on_retry=jobs.on_retry,
        ),
        AreaJob(
            APPLY,
            jobs.apply_changes,
            "Apply the changes of a source",
            on_dead=jobs.on_dead_apply,
            on_retry=jobs.on_retry,
        ),
    ),
    periodic_tasks=(PeriodicTask(5.0, service.start_due),),
    before_agents_deleted=_stop_syncs,
    tables=(
        UncountedTable("document_sources", "entered by hand, at most 50 of an agent"),
        CountedTable("source_entries", "knowledge", "octet_length(t.url)"),
    ),
)
