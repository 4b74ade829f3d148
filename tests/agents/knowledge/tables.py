"""What Postgres and LanceDB have of an agent's table."""

from typing import Any

from app.domain.agents.knowledge import maintenance
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.lance import TableRef
from app.services import Services
from tests.agents.knowledge.librarian import Librarian
from tests.assertions import wait_until
from tests.database import fetch_rows, run_sql


async def find_base(services: Services, agent_id: str) -> Any:
    sql = "SELECT * FROM knowledge_bases WHERE agent_id = $1"
    (row,) = await fetch_rows(services, sql, agent_id)
    return row


async def list_generations(services: Services, agent_id: str) -> list[int]:
    tables = await services.get(ChunkStore).list_tables(agent_id)
    return sorted(ref.generation for ref in tables)


async def current_table(services: Services, agent_id: str) -> TableRef:
    return TableRef(agent_id, (await find_base(services, agent_id))["generation"])


async def _is_released(services: Services, agent_id: str) -> bool:
    sql = "SELECT 1 FROM knowledge_bases WHERE agent_id = $1 AND writer_until > now()"
    return not await fetch_rows(services, sql, agent_id)


async def maintain(services: Services, librarian: Librarian) -> None:
    """Does what the worker would do seconds later, and keeps the worker from doing it. The worker
    releases the table just after its last document is ready.
    """
    sql = "UPDATE knowledge_bases SET maintain_at = NULL WHERE agent_id = $1"
    await run_sql(services, sql, librarian.agent_id)
    await wait_until(lambda: _is_released(services, librarian.agent_id))
    await maintenance.maintain(services, librarian.client.tenant_id, librarian.agent_id)


def ones(count: int, dimensions: int) -> Any:
    """Returns equal vectors."""
    import numpy as np  # noqa: PLC0415  # every test process imports this file

    return np.ones((count, dimensions), np.float32)


def random_vectors(count: int, dimensions: int, seed: int = 1) -> Any:
    import numpy as np  # noqa: PLC0415  # every test process imports this file

    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
