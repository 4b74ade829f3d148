"""Documents that the console shows, written without reading files."""

from app.kit.ids import new_id
from app.services import Services
from tests.database import run_sql
from tests.scripted_agents import Talker

_ADD = """
WITH accepted AS (
    INSERT INTO work (tenant_id, id, kind, ref_id, state, attempt, max_attempts, correlation_id,
                      run_at, lease_until)
    VALUES ($1, $4::text, 'test.none', $2::text, 'leased', 2, 5, $4::text,
            now() + interval '20 seconds', now() + $6 * interval '1 second')
)
INSERT INTO documents (tenant_id, id, agent_id, name, mime_type, size_bytes, status, stage,
                       stage_at, passage_count, embedded_count, work_id, error)
VALUES ($1, $2::text, $3, $5, 'text/plain', 48213, $7::text, 'embedding', now(), 40, 10, $4::text,
        $8)
"""


async def add_document(
    services: Services,
    talk: Talker,
    name: str,
    status: str,
    *,
    lease: int = 20,
    error: str | None = None,
) -> str:
    """A document whose work nobody runs, because no worker knows its kind."""
    document_id = new_id("doc")
    ids = (document_id, talk.agent_id, new_id("wrk"))
    await run_sql(services, _ADD, talk.client.tenant_id, *ids, name, lease, status, error)
    return document_id
