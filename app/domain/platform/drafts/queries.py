"""The SQL of drafts. The statement that reads a record joins its draft."""

from db import fast
from db.fast import Row
from db.session import Tx

_COLUMNS = (
    "body::text AS draft_body, base::text AS draft_base, base_version AS draft_base_version,"
    " saved_by AS draft_saved_by, updated_at AS draft_saved_at"
)
_STORE = f"""
INSERT INTO record_drafts AS d
    (tenant_id, id, kind, record_id, body, base, base_version, saved_by)
VALUES ($1, $2, $3, $4, $5::jsonb, $6::jsonb, $7, $8)
ON CONFLICT (tenant_id, kind, record_id) DO UPDATE
SET body = excluded.body, saved_by = excluded.saved_by, updated_at = now()
RETURNING {_COLUMNS}
"""
_FIND = f"""
SELECT {_COLUMNS} FROM record_drafts WHERE tenant_id = $1 AND kind = $2 AND record_id = $3
"""
_DELETE = "DELETE FROM record_drafts WHERE tenant_id = $1 AND kind = $2 AND record_id = ANY($3)"


def join_sql(kind: str, record: str) -> str:
    """Joins the draft, as columns of `draft`, to rows of records, which `record` names."""
    return f"""
LEFT JOIN LATERAL (
    SELECT {_COLUMNS} FROM record_drafts
    WHERE tenant_id = {record}.tenant_id AND kind = '{kind}' AND record_id = {record}.id
) draft ON true"""


async def store(tx: Tx, tenant: str, *values: object) -> Row:
    """The values are id, kind, record_id, body, base, base_version and saved_by. A draft that
    exists keeps its base.
    """
    row = await fast.row(tx, tenant, _STORE, *values)
    if row is None:
        raise RuntimeError("a draft was not stored")
    return row


async def find(tx: Tx, tenant: str, kind: str, record_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND, kind, record_id)


async def delete(tx: Tx, tenant: str, kind: str, record_ids: list[str]) -> bool:
    """False when there was none."""
    return await fast.execute(tx, tenant, _DELETE, kind, record_ids) > 0
