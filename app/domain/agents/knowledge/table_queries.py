"""SQL of the tables of chunks: their generations, writers and upkeep.

A transaction locks rows of work first, then those of documents, and then that of the knowledge
base, as the deletion of an agent does.
"""

from db import fast, ledger
from db.fast import Row
from db.session import Tx

from .arrow_rows import TABLE_FORMAT

_BASE_COLUMNS = """
tenant_id, agent_id, generation, revision, embedding_model, has_removed_chunks, format, languages,
encoders,
coalesce(rebuild_after <= now(), true) AS may_rebuild
"""
_FIND_BASE = f"""
SELECT {_BASE_COLUMNS} FROM knowledge_bases
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2
"""
_TAKE_WRITER = f"""
UPDATE knowledge_bases SET writer = $3, writer_until = now() + $4 * interval '1 second'
WHERE tenant_id = $1 AND agent_id = $2 AND (writer_until IS NULL OR writer_until < now())
RETURNING {_BASE_COLUMNS}
"""
_RENEW_WRITER = """
UPDATE knowledge_bases SET writer_until = now() + $4 * interval '1 second'
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3
"""
_RELEASE_WRITER = """
UPDATE knowledge_bases SET writer = NULL, writer_until = NULL
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3
"""
_RECORD_CHANGE = """
UPDATE knowledge_bases
SET revision = revision + 1, has_removed_chunks = has_removed_chunks OR $5,
    maintain_at = least(maintain_at, now() + $6 * interval '1 second')
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3 AND generation = $4
"""
_RECORD_MAINTENANCE = """
UPDATE knowledge_bases SET revision = revision + 1
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3
"""
_NEXT_GENERATION = """
UPDATE knowledge_bases SET last_generation = greatest(last_generation, generation) + 1
WHERE tenant_id = $1 AND agent_id = $2 RETURNING last_generation
"""
_SWAP = """
UPDATE knowledge_bases
SET generation = $5, embedding_model = $6, revision = revision + 1, has_removed_chunks = $7,
    rebuild_after = now() + $8 * interval '1 second'
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3 AND generation = $4
"""
_ADD_CONTENTS = """
UPDATE knowledge_bases
SET languages = CASE WHEN $3::text = ANY(languages) OR $3 IS NULL THEN languages
                     ELSE array_append(languages, $3) END,
    encoders = CASE WHEN $4::text = ANY(encoders) OR $4 IS NULL THEN encoders
                    ELSE array_append(encoders, $4) END
WHERE tenant_id = $1 AND agent_id = $2
"""
_SET_CONTENTS = """
UPDATE knowledge_bases
SET format = $3, encoders = $4, languages = coalesce((
        SELECT array_agg(DISTINCT n.language)
        FROM documents d, unnest(ARRAY[d.language, d.chosen_language]) AS n (language)
        WHERE d.tenant_id = $1 AND d.agent_id = $2 AND n.language IS NOT NULL
    ), '{}')
WHERE tenant_id = $1 AND agent_id = $2
"""

# Maintenance

# Work for one agent does not run twice at a time.
IS_UNATTENDED = f"NOT {ledger.unfinished_sql('w.ref_id = k.agent_id AND w.kind = $1')}"
_MARK_DUE = f"""
UPDATE knowledge_bases k SET maintain_at = now()
WHERE k.maintain_at IS NULL AND {IS_UNATTENDED}
  AND (k.embedding_model <> $2 OR k.has_removed_chunks OR k.format < {TABLE_FORMAT})
  AND coalesce(k.rebuild_after <= now(), true)
"""
_DELAY_REBUILD = """
UPDATE knowledge_bases SET rebuild_after = now() + $3 * interval '1 second'
WHERE tenant_id = $1 AND agent_id = $2
"""
_TAKE_DUE = f"""
UPDATE knowledge_bases SET maintain_at = NULL
WHERE agent_id IN (
    SELECT k.agent_id FROM knowledge_bases k WHERE k.maintain_at <= now() AND {IS_UNATTENDED}
    ORDER BY k.maintain_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
RETURNING tenant_id, agent_id
"""
_WITH_BASE = "SELECT agent_id FROM knowledge_bases WHERE tenant_id = $1 AND agent_id = ANY($2)"
_GENERATIONS = "SELECT agent_id, generation FROM knowledge_bases WHERE agent_id = ANY($1)"
_EXISTING_AGENTS = "SELECT id FROM agents WHERE id = ANY($1)"
_LIST_BASES = "SELECT tenant_id, agent_id FROM knowledge_bases ORDER BY agent_id"


async def find_base(tx: Tx, tenant: str | None, agent_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_BASE, agent_id)


async def take_writer(
    tx: Tx, tenant: str, agent_id: str, writer: str, seconds: float
) -> Row | None:
    """Returns None while another writer has the table."""
    return await fast.row(tx, tenant, _TAKE_WRITER, agent_id, writer, seconds)


async def renew_writer(tx: Tx, tenant: str, agent_id: str, writer: str, seconds: float) -> None:
    await fast.execute(tx, tenant, _RENEW_WRITER, agent_id, writer, seconds)


async def release_writer(tx: Tx, tenant: str, agent_id: str, writer: str) -> None:
    await fast.execute(tx, tenant, _RELEASE_WRITER, agent_id, writer)


async def record_change(
    tx: Tx,
    tenant: str,
    agent_id: str,
    writer: str,
    generation: int,
    *,
    removed: bool,
    maintain_seconds: float,
) -> bool:
    """False when the lease was lost, or the table has been replaced."""
    args = (agent_id, writer, generation, removed, maintain_seconds)
    return bool(await fast.execute(tx, tenant, _RECORD_CHANGE, *args))


async def record_maintenance(tx: Tx, tenant: str, agent_id: str, writer: str) -> None:
    await fast.execute(tx, tenant, _RECORD_MAINTENANCE, agent_id, writer)


async def swap(
    tx: Tx,
    tenant: str,
    agent_id: str,
    writer: str,
    generations: tuple[int, int],
    embedding_model: str,
    *,
    has_removed_chunks: bool,
    pause_seconds: float,
) -> bool:
    """Replaces the first generation by the second; False when the lease was lost. For so long the
    second is not rebuilt.
    """
    args = (agent_id, writer, *generations, embedding_model, has_removed_chunks, pause_seconds)
    return bool(await fast.execute(tx, tenant, _SWAP, *args))


async def add_contents(
    tx: Tx, tenant: str, agent_id: str, *, language: str | None = None, encoder: str | None = None
) -> None:
    """Adds a language of the table's documents, or an encoder that has encoded passages."""
    await fast.execute(tx, tenant, _ADD_CONTENTS, agent_id, language, encoder)


async def set_contents(tx: Tx, tenant: str, agent_id: str, encoders: list[str]) -> None:
    """Stores what a new table has; its languages are those of the documents."""
    await fast.execute(tx, tenant, _SET_CONTENTS, agent_id, TABLE_FORMAT, encoders)


async def next_generation(tx: Tx, tenant: str, agent_id: str) -> int | None:
    """Returns a generation that no table of the agent has had; None when the agent is deleted."""
    generation: int | None = await fast.value(tx, tenant, _NEXT_GENERATION, agent_id)
    return generation


# Maintenance


async def mark_due(tx: Tx, kind: str, embedding_model: str) -> None:
    """Marks the tables that have vectors of another model, or text of removed chunks, as due."""
    await (await tx.raw()).execute(_MARK_DUE, kind, embedding_model)


async def delay_rebuild(tx: Tx, tenant: str, agent_id: str, seconds: float) -> None:
    await fast.execute(tx, tenant, _DELAY_REBUILD, agent_id, seconds)


async def take_due(tx: Tx, kind: str, limit: int) -> list[Row]:
    """Returns tables that are due, and marks them as not due."""
    return list(await (await tx.raw()).fetch(_TAKE_DUE, kind, limit))


async def list_with_base(tx: Tx, tenant: str, agent_ids: list[str]) -> list[str]:
    return [row["agent_id"] for row in await fast.rows(tx, tenant, _WITH_BASE, agent_ids)]


async def list_existing_agents(tx: Tx, agent_ids: list[str]) -> set[str]:
    rows = await (await tx.raw()).fetch(_EXISTING_AGENTS, agent_ids)
    return {row["id"] for row in rows}


async def list_generations(tx: Tx, agent_ids: list[str]) -> dict[str, int]:
    rows = await (await tx.raw()).fetch(_GENERATIONS, agent_ids)
    return {row["agent_id"]: row["generation"] for row in rows}


async def list_bases(tx: Tx) -> list[Row]:
    """Returns the tables of all tenants."""
    return list(await (await tx.raw()).fetch(_LIST_BASES))
