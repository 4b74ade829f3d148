"""SQL of what sentence encoders have encoded, and have not."""

from collections.abc import Mapping

from db import fast
from db.fast import Row
from db.session import Tx

from .table_queries import IS_UNATTENDED

# Tables whose documents are to be refined.
_LIST_AGENTS = f"""
SELECT k.tenant_id, k.agent_id FROM knowledge_bases k
WHERE k.agent_id IN (
    SELECT d.agent_id FROM documents d
    WHERE d.refined_count < d.chunk_count AND d.deleted_at IS NULL
      AND d.status IN ('ready', 'failed')
  )
  AND k.embedding_model = $2 AND coalesce(k.refine_after <= now(), true) AND {IS_UNATTENDED}
ORDER BY random() LIMIT $3 FOR UPDATE SKIP LOCKED
"""
_DELAY_REFINING = """
UPDATE knowledge_bases SET refine_after = now() + $3 * interval '1 second'
WHERE tenant_id = $1 AND agent_id = $2
"""
_LIST_UNREFINED = """
SELECT id, name, version, language, chunk_count, refined_count FROM documents
WHERE tenant_id = $1 AND agent_id = $2 AND refined_count < chunk_count AND deleted_at IS NULL
  AND status IN ('ready', 'failed') AND id <> ALL($3)
ORDER BY asked_count DESC, processed_at DESC, id LIMIT $4
"""
_LIST_STATES = """
SELECT id, version, refined_count FROM documents
WHERE tenant_id = $1 AND id = ANY($2) AND deleted_at IS NULL
"""
_SET_REFINED = """
UPDATE documents d SET refined_count = n.refined_count
FROM unnest($2::text[], $3::int[]) AS n (id, refined_count)
WHERE d.tenant_id = $1 AND d.id = n.id
"""
_COUNT_ASKED = """
UPDATE documents SET asked_count = asked_count + 1
WHERE tenant_id = $1 AND id = ANY($2) AND refined_count < chunk_count
"""
_RESET_REFINED = """
UPDATE documents SET refined_count = 0
WHERE tenant_id = $1 AND agent_id = $2 AND refined_count > 0
  AND ($3::text[] IS NULL OR id = ANY($3))
"""


async def list_agents(tx: Tx, kind: str, embedding_model: str, limit: int) -> list[Row]:
    return list(await (await tx.raw()).fetch(_LIST_AGENTS, kind, embedding_model, limit))


async def delay_refining(tx: Tx, tenant: str, agent_id: str, seconds: float) -> None:
    await fast.execute(tx, tenant, _DELAY_REFINING, agent_id, seconds)


async def list_unrefined(
    tx: Tx, tenant: str, agent_id: str, without: list[str], limit: int
) -> list[Row]:
    """Returns the documents whose passages are asked for most, and of those the newest, first."""
    return await fast.rows(tx, tenant, _LIST_UNREFINED, agent_id, without, limit)


async def list_states(tx: Tx, tenant: str, document_ids: list[str]) -> dict[str, tuple[int, int]]:
    """Returns the version of each document, and how many of its passages are encoded."""
    rows = await fast.rows(tx, tenant, _LIST_STATES, document_ids)
    return {row["id"]: (row["version"], row["refined_count"]) for row in rows}


async def set_refined(tx: Tx, tenant: str, counts: Mapping[str, int]) -> None:
    await fast.execute(tx, tenant, _SET_REFINED, list(counts), list(counts.values()))


async def count_asked(tx: Tx, tenant: str, document_ids: list[str]) -> None:
    """Counts a question whose answer quoted these documents, as far as they are not refined."""
    await fast.execute(tx, tenant, _COUNT_ASKED, document_ids)


async def reset_refined(
    tx: Tx, tenant: str, agent_id: str, document_ids: list[str] | None = None
) -> None:
    """Lets these documents, or all of the agent, be refined anew."""
    await fast.execute(tx, tenant, _RESET_REFINED, agent_id, document_ids)
