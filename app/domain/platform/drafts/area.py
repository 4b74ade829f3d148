from typing import Final

from app.domain.area import AgentDeletion, Area
from db.storage_quota import CountedTable

from . import service


async def _delete_drafts(deletion: AgentDeletion) -> None:
    await service.delete_of_records(deletion.tx, deletion.tenant_id, "agent", deletion.agent_ids)


AREA: Final = Area(
    name="drafts",
    after_agents_deleted=_delete_drafts,
    tables=(
        CountedTable(
            "record_drafts",
            "definitions",
            "octet_length(t.body::text) + octet_length(t.base::text)",
            changes="OLD.body IS DISTINCT FROM NEW.body",
        ),
    ),
)
