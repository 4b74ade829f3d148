"""SQL of files that are uploaded to forms."""

from datetime import datetime

from app.security.plans import limit_sql
from db import fast
from db.fast import Row
from db.session import Tx

from .upload_limits import MAX_WAITING, MAX_WAITING_OF_TENANT, MEGABYTE, WaitingFiles

# What waits before an upload, for `WaitingFiles`: `$2` is the form and `$3` the sender's network.
_WAITING = f"""
SELECT f.count, f.count_of_address, t.count AS tenant_count, t.bytes AS tenant_bytes,
       t.bytes_of_address AS tenant_bytes_of_address,
       (SELECT coalesce(sum(size_bytes), 0)::bigint FROM form_uploads
        WHERE tenant_id = $1 AND form_id = $2 AND network = $3
          AND created_at > now() - interval '1 day') AS day_bytes_of_address,
       (SELECT {limit_sql("storage_mb", "x")} * {MEGABYTE} FROM tenants x WHERE x.id = $1)
           AS quota_bytes
FROM (
    SELECT count(*) AS count, count(*) FILTER (WHERE network = $3) AS count_of_address FROM (
        SELECT network FROM form_uploads
        WHERE tenant_id = $1 AND form_id = $2 AND submission_id IS NULL LIMIT {MAX_WAITING}
    ) waiting
) f CROSS JOIN (
    SELECT count(*) AS count, coalesce(sum(size_bytes), 0)::bigint AS bytes,
           coalesce(sum(size_bytes) FILTER (WHERE network = $3), 0)::bigint AS bytes_of_address
    FROM (
        SELECT size_bytes, network FROM form_uploads
        WHERE tenant_id = $1 AND submission_id IS NULL LIMIT {MAX_WAITING_OF_TENANT}
    ) waiting
) t
"""
# Returns what waits without the new file, which the statement does not see yet.
_INSERT = f"""
WITH inserted AS (
    INSERT INTO form_uploads
        (tenant_id, form_id, network, file_id, field_id, filename, size_bytes, mime_type,
         expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
)
{_WAITING}
"""
# A file that came with its submission.
_INSERT_BOUND = """
INSERT INTO form_uploads
    (tenant_id, form_id, network, file_id, field_id, filename, size_bytes, mime_type, submission_id)
VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8)
"""
_LIST_NAMES = (
    "SELECT file_id, filename FROM form_uploads WHERE tenant_id = $1 AND submission_id = $2"
)
# Only files that nothing else has: neither another submission nor one whose time is up.
_USABLE = """
tenant_id = $1 AND form_id = $2 AND submission_id IS NULL AND expires_at > now()
AND (file_id, field_id) IN (SELECT * FROM unnest($3::text[], $4::text[]))
"""
_BIND = f"""
UPDATE form_uploads SET submission_id = $5, expires_at = NULL WHERE {_USABLE} RETURNING field_id
"""
_KEEP = f"""
UPDATE form_uploads SET expires_at = greatest(expires_at, $5) WHERE {_USABLE} RETURNING field_id
"""
_FIND_OF_FORM = """
SELECT 1 FROM form_uploads u JOIN forms f ON f.id = u.form_id AND f.tenant_id = u.tenant_id
WHERE ($1::text IS NULL OR u.tenant_id = $1) AND u.form_id = $2 AND u.file_id = $3
  AND u.submission_id IS NOT NULL AND u.expires_at IS NULL AND f.deleted_at IS NULL
"""
_LIST_EXPIRED = """
SELECT tenant_id, file_id FROM form_uploads WHERE expires_at < now()
ORDER BY expires_at LIMIT $1
"""
# Again, since a submission may have taken it meanwhile.
_DELETE_EXPIRED = """
DELETE FROM form_uploads WHERE tenant_id = $1 AND file_id = $2 AND expires_at < now()
RETURNING file_id
"""


async def insert(tx: Tx, tenant: str, *values: object) -> WaitingFiles:
    """The values are those of the statement, from form_id to expires_at. Returns what waited before
    it.
    """
    return _build_waiting(await fast.row(tx, tenant, _INSERT, *values))


async def insert_bound(tx: Tx, tenant: str, *values: object) -> None:
    """The values are those of the statement, from form_id to submission_id."""
    await fast.execute(tx, tenant, _INSERT_BOUND, *values)


async def list_names(tx: Tx, tenant: str, submission_id: str) -> dict[str, str]:
    """Returns the names of a submission's files, by their ids."""
    rows = await fast.rows(tx, tenant, _LIST_NAMES, submission_id)
    return {row["file_id"]: row["filename"] for row in rows}


async def bind(
    tx: Tx, tenant: str, form_id: str, files: dict[str, str], submission_id: str
) -> set[str]:
    """Gives files, by the ids of their fields, to a submission. Returns the fields whose files
    it got.
    """
    ids, fields = list(files.values()), list(files)
    rows = await fast.rows(tx, tenant, _BIND, form_id, ids, fields, submission_id)
    return {row["field_id"] for row in rows}


async def keep(
    tx: Tx, tenant: str, form_id: str, files: dict[str, str], until: datetime
) -> set[str]:
    """Keeps files for a draft or a conversation. Returns the fields whose files exist."""
    ids, fields = list(files.values()), list(files)
    rows = await fast.rows(tx, tenant, _KEEP, form_id, ids, fields, until)
    return {row["field_id"] for row in rows}


async def is_submitted(tx: Tx, tenant: str | None, form_id: str, file_id: str) -> bool:
    return await fast.value(tx, tenant, _FIND_OF_FORM, form_id, file_id) is not None


async def count_waiting(tx: Tx, tenant: str, form_id: str, network: str) -> WaitingFiles:
    return _build_waiting(await fast.row(tx, tenant, _WAITING, form_id, network))


def _build_waiting(row: Row | None) -> WaitingFiles:
    if row is None:
        raise LookupError("the statement has one row")
    return WaitingFiles(**{name: row[name] for name in WaitingFiles.__struct_fields__})


async def list_expired(tx: Tx, limit: int) -> list[Row]:
    return list(await (await tx.raw()).fetch(_LIST_EXPIRED, limit))


async def delete_expired(tx: Tx, tenant: str, file_id: str) -> bool:
    return await fast.value(tx, tenant, _DELETE_EXPIRED, file_id) is not None
