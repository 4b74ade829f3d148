"""SQL of the progress of documents, and of retries of those that failed."""

from typing import Final

from db import fast
from db.fast import Row
from db.session import Tx

from .work_kinds import INGEST

# The lease of a worker is renewed while it is alive; by default for so long.
_LEASE: Final = "interval '30 seconds'"
_STAGE: Final = """CASE status
    WHEN 'pending' THEN 'waiting' WHEN 'failed' THEN 'failed'
    WHEN 'ready' THEN CASE WHEN refined_count > 0 AND refined_count < chunk_count
                           THEN 'refining' ELSE 'ready' END
    ELSE CASE WHEN w.state = 'leased' THEN coalesce(stage, 'reading') ELSE 'waiting' END END"""
# An expression in the list of a statement on documents, whose first argument is the tenant.
PROGRESS: Final = f"""(
SELECT json_build_object(
    'stage', stage, 'passages_done', done, 'passages_total', total,
    'share', CASE WHEN total > 0 THEN round(least(done, total)::numeric / total, 3) END,
    'attempt', attempt, 'max_attempts', max_attempts, 'next_attempt_at', next_attempt_at,
    'last_error', last_error, 'is_stuck', is_stuck, 'last_seen_at', last_seen_at)
FROM (
    SELECT p.stage, coalesce(w.attempt, 0) AS attempt,
           coalesce(w.max_attempts, {INGEST.max_attempts}) AS max_attempts,
           CASE p.stage WHEN 'embedding' THEN embedded_count WHEN 'refining' THEN refined_count
                        WHEN 'ready' THEN chunk_count END AS done,
           CASE p.stage WHEN 'embedding' THEN passage_count WHEN 'refining' THEN chunk_count
                        WHEN 'ready' THEN chunk_count END AS total,
           CASE WHEN w.state = 'pending' THEN w.run_at END AS next_attempt_at,
           CASE WHEN w.state IN ('pending', 'leased') THEN w.last_error END AS last_error,
           status IN ('pending', 'processing') AND coalesce(
               CASE w.state WHEN 'leased' THEN w.lease_until < now()
                            WHEN 'pending' THEN w.run_at < now() - interval '60 seconds'
                            ELSE true END, true) AS is_stuck,
           greatest(stage_at, w.started_at, processed_at,
                    CASE WHEN w.state = 'leased' THEN least(now(), w.lease_until - {_LEASE}) END
           ) AS last_seen_at
    FROM (SELECT 1) one
    LEFT JOIN work w ON w.id = work_id AND ($1::text IS NULL OR w.tenant_id = $1)
    CROSS JOIN LATERAL (SELECT {_STAGE} AS stage) p
) progress)"""

_SET_EMBEDDED = """
UPDATE documents
SET stage = 'embedding', stage_at = now(), passage_count = $4, embedded_count = $5
WHERE tenant_id = $1 AND id = $2 AND version = $3 AND status = 'processing'
"""
_LIST_FAILED = """
SELECT tenant_id, id, work_id, file_key IS NOT NULL AS is_stored FROM documents
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND deleted_at IS NULL
  AND status = 'failed'
ORDER BY id FOR UPDATE
"""
_ADD_WORK = INGEST.insert_sql(
    "again",
    id="work_id",
    ref_id="id",
    lane="$1::text",
    correlation_id="$4::text",
)
_RESTART_MANY = f"""
WITH again AS (
    UPDATE documents d
    SET status = 'pending', error = NULL, version = d.version + 1, work_id = g.work_id,
        processed_at = NULL, stage = NULL, stage_at = NULL
    FROM unnest($2::text[], $3::text[]) AS g(id, work_id)
    WHERE d.tenant_id = $1 AND d.id = g.id RETURNING d.id, d.work_id
)
{_ADD_WORK}
"""


async def set_embedded(
    tx: Tx, tenant: str, document_id: str, version: int, total: int, count: int
) -> None:
    await fast.execute(tx, tenant, _SET_EMBEDDED, document_id, version, total, count)


async def lock_failed(tx: Tx, tenant: str | None, agent_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_FAILED, agent_id)


async def restart_many(
    tx: Tx, tenant: str, document_ids: list[str], work_ids: list[str], correlation_id: str
) -> None:
    await fast.execute(tx, tenant, _RESTART_MANY, document_ids, work_ids, correlation_id)
