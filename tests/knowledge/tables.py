"""What Postgres and LanceDB have of an agent's table."""

from typing import Any

from app.domain.knowledge import maintenance
from app.domain.knowledge.chunk_store import ChunkStore, TableRef
from app.services import Services
from tests.database import fetch_rows, run_sql
from tests.knowledge.librarian import Librarian


async def find_base(services: Services, agent_id: str) -> Any:
    sql = "SELECT * FROM knowledge_bases WHERE agent_id = $1"
    (row,) = await fetch_rows(services, sql, agent_id)
    return row


async def list_generations(services: Services, agent_id: str) -> list[int]:
    tables = await services.get(ChunkStore).list_tables(agent_id)
    return sorted(ref.generation for ref in tables)


async def current_table(services: Services, agent_id: str) -> TableRef:
    return TableRef(agent_id, (await find_base(services, agent_id))["generation"])


async def maintain(services: Services, librarian: Librarian) -> None:
    """Does what the worker would do seconds later, and keeps the worker from doing it."""
    sql = "UPDATE knowledge_bases SET maintain_at = NULL WHERE agent_id = $1"
    await run_sql(services, sql, librarian.agent_id)
    await maintenance.maintain(services, librarian.client.tenant_id, librarian.agent_id)
