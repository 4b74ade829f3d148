"""SQL of speech jobs."""

from db import fast
from db.fast import Row
from db.session import Tx

_INSERT = """
INSERT INTO speech_jobs (tenant_id, id, agent_id, work_id, kind, model, input_key, text, voice,
                         options, format)
SELECT $1, $3, $2, $4, $5, $6, $7, $8, $9, $10::jsonb, $11
"""
# The agent's row is locked, so that a job is not added to an agent that is being deleted.
_INSERT_FOR_AGENT = f"""{_INSERT}
FROM (SELECT id FROM agents WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE) a
"""
_START = """
UPDATE speech_jobs SET status = 'running'
WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL
RETURNING agent_id, kind, model, input_key, text, voice, options::text AS options, format
"""
_FINISH = """
UPDATE speech_jobs
SET status = CASE WHEN $6::text IS NULL THEN 'completed' ELSE 'failed' END,
    transcript = $3, details = $4::jsonb, output_key = $5, error = $6::jsonb, finished_at = now()
WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL
"""
_FIND = """
SELECT status, transcript, details::text AS details, output_key, error::text AS error, finished_at
FROM speech_jobs WHERE tenant_id = $1 AND id = $2
"""
_DELETE = "DELETE FROM speech_jobs WHERE tenant_id = $1 AND id = $2 RETURNING output_key"
_LIST_OF_AGENTS = """
SELECT work_id, input_key, output_key FROM speech_jobs WHERE tenant_id = $1 AND agent_id = ANY($2)
"""


async def insert_job(
    tx: Tx, tenant_id: str, agent_id: str | None, job_id: str, *values: str | None
) -> bool:
    """`values` are the columns from `work_id` on. Returns False when the agent does not exist."""
    statement = _INSERT if agent_id is None else _INSERT_FOR_AGENT
    return await fast.execute(tx, tenant_id, statement, agent_id, job_id, *values) == 1


async def start_job(tx: Tx, tenant_id: str, job_id: str) -> Row | None:
    """Returns None when the job is finished or deleted."""
    return await fast.row(tx, tenant_id, _START, job_id)


async def finish_job(
    tx: Tx,
    tenant_id: str,
    job_id: str,
    *,
    transcript: str | None = None,
    details: str | None = None,
    output_key: str | None = None,
    error: str | None,
) -> bool:
    """Returns False when the job is finished or deleted."""
    values = (transcript, details, output_key, error)
    return await fast.execute(tx, tenant_id, _FINISH, job_id, *values) == 1


async def find_job(tx: Tx, tenant_id: str, job_id: str) -> Row | None:
    return await fast.row(tx, tenant_id, _FIND, job_id)


async def delete_job(tx: Tx, tenant_id: str, job_id: str) -> str | None:
    """Returns the key of its output file."""
    key: str | None = await fast.value(tx, tenant_id, _DELETE, job_id)
    return key


async def list_jobs_of_agents(tx: Tx, tenant_id: str, agent_ids: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant_id, _LIST_OF_AGENTS, agent_ids)
