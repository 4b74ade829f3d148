"""SQL of submissions."""

from datetime import datetime
from typing import Any, Final

import msgspec

from app.domain.forms.definition.api import count_sql
from app.domain.platform.events import api as events
from app.kit import paging
from app.kit.paging import Page
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.session import Tx
from db.views import View

from .submission_schemas import SubmissionStatus, SubmissionSummary
from .work_kinds import PROCESS

# Lists and events contain answers up to this size.
LISTED_BYTES: Final = 32 * 1024
_OWN_METADATA: Final = ("ip_address", "user_agent", "source", "page_url", "referrer")
_PROCESS_WORK = PROCESS.insert_sql(
    "inserted s, emitted e RETURNING id",
    id="$21::text",
    ref_id="s.id",
    dedupe_key="s.id",
    correlation_id="e.correlation_id",
    cause_event_id="e.id",
    # Workers find what is not dispatched within a second.
    dispatched_at="CASE WHEN $20::boolean THEN now() END",
)
# The form is locked as by a foreign key, so that it is not deleted meanwhile.
# Answers that the same address has sent on this day are marked; so is the event. The fingerprint is
# of one form. Without a condition on the form, no other index than that of fingerprints serves.
_INSERT = f"""
WITH form AS (
    SELECT f.id FROM forms f
    WHERE f.tenant_id = $1 AND f.id = $3 AND f.status = 'published' AND f.deleted_at IS NULL
      AND ($19::bigint IS NULL OR {count_sql("f")} < $19)
    FOR KEY SHARE OF f
), inserted AS (
    INSERT INTO form_submissions
        (tenant_id, id, form_id, version, data, custom_metadata, source, ip_address, user_agent,
         page_url, referrer, answered, completion_seconds, fingerprint, submitted_by,
         conversation_id, errors, flags)
    SELECT $1, $2, form.id, $4, $5::json, $6::json, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
           '[]'::json, $17::text[] || CASE WHEN EXISTS (
               SELECT 1 FROM form_submissions e
               WHERE e.tenant_id = $1 AND e.fingerprint = $14
                 AND e.created_at > now() - interval '1 day'
           ) THEN ARRAY['repeat'] ELSE '{{}}' END
    FROM form
    RETURNING id, flags, created_at
), counted AS (
    INSERT INTO form_counts AS c (tenant_id, form_id, part, submissions)
    SELECT $1, $3, pg_backend_pid() % 16, 1 FROM inserted
    ON CONFLICT (form_id, part) DO UPDATE SET submissions = c.submissions + 1
), {
    events.emission_sql(
        "(SELECT jsonb_set($18::jsonb, '{0,data,flags}', to_jsonb(flags)) FROM inserted)"
    )
}, accepted AS ({_PROCESS_WORK})
SELECT s.created_at, (SELECT id FROM emitted) AS event_id
FROM inserted s
"""
# Held until the end of the transaction, so that the next submission sees this one.
_LOCK_COUNT = "SELECT pg_advisory_xact_lock(hashtextextended('form:' || $1 || $2, 0))"
_SET_EXECUTION = """
UPDATE form_submissions SET workflow_execution_id = $3 WHERE tenant_id = $1 AND id = $2
"""
_FILES = """
(SELECT coalesce(json_agg(json_build_object(
            'field_id', u.field_id, 'file_id', u.file_id, 'filename', u.filename,
            'size_bytes', u.size_bytes, 'mime_type', u.mime_type) ORDER BY u.file_id), '[]')
 FROM form_uploads u WHERE u.tenant_id = s.tenant_id AND u.submission_id = s.id)"""
_VIEW = View(
    SubmissionSummary,
    "s",
    computed=("data", "is_omitted", "metadata"),
    form_name="f.name",
    files=_FILES,
)
_OTHERS = f"s.custom_metadata, {', '.join(f's.{name}' for name in _OWN_METADATA)}"
_SOURCE = "form_submissions s JOIN forms f ON f.id = s.form_id AND f.tenant_id = s.tenant_id"
_COLUMNS = f"{_VIEW.columns}, {_OTHERS}, s.data"
_LISTED_COLUMNS = f"""
{_VIEW.columns}, {_OTHERS},
CASE WHEN octet_length(s.data::text) <= {LISTED_BYTES} THEN s.data END AS data"""
_FIND = f"""
SELECT {_COLUMNS} FROM {_SOURCE}
WHERE ($1::text IS NULL OR s.tenant_id = $1) AND s.form_id = $2 AND s.id = $3
  AND f.deleted_at IS NULL
"""
# A list is searched item by item, not as JSON. An image that was drawn has no words.
_SEARCH = """
EXISTS (SELECT 1 FROM json_each(s.data) a
        WHERE CASE json_typeof(a.value)
              WHEN 'array' THEN EXISTS (
                  SELECT 1 FROM json_array_elements_text(a.value) item(text)
                  WHERE strpos(lower(item.text), lower($n)) > 0)
              ELSE strpos(lower(a.value #>> '{}'), lower($n)) > 0
                   AND NOT starts_with(a.value #>> '{}', 'data:image/png;base64,') END)"""
_FIND_CREATED_AT = """
SELECT created_at FROM form_submissions
WHERE ($1::text IS NULL OR tenant_id = $1) AND form_id = $2 AND id = $3
"""
_LOCK = """
SELECT s.id, s.tenant_id, s.status, s.processed_at, f.name AS form_name, s.errors
FROM form_submissions s JOIN forms f ON f.id = s.form_id AND f.tenant_id = s.tenant_id
WHERE ($1::text IS NULL OR s.tenant_id = $1) AND s.form_id = $2 AND s.id = $3
  AND f.deleted_at IS NULL
FOR UPDATE OF s
"""
_SET_STATUS = "UPDATE form_submissions SET status = $3 WHERE tenant_id = $1 AND id = $2"
_DELETE = """
WITH deleted AS (
    DELETE FROM form_submissions WHERE tenant_id = $1 AND form_id = $2 AND id = $3
    RETURNING id, conversation_id
), conversation AS (
    -- Its messages are deleted soon, like those of others that have expired.
    UPDATE form_conversations SET expires_at = now(), data = '{}'
    WHERE tenant_id = $1 AND id IN (SELECT conversation_id FROM deleted)
), counted AS (
    INSERT INTO form_counts AS c (tenant_id, form_id, part, submissions)
    SELECT $1, $2, pg_backend_pid() % 16, -1 FROM deleted
    ON CONFLICT (form_id, part) DO UPDATE SET submissions = c.submissions - 1
)
UPDATE form_uploads SET expires_at = now()
WHERE tenant_id = $1 AND submission_id IN (SELECT id FROM deleted)
"""


class NewRow(msgspec.Struct, frozen=True, kw_only=True):
    """A submission to store, in the order of the statement's arguments."""

    id: str
    form_id: str
    version: int
    data: str
    metadata: str
    source: str
    ip_address: str
    user_agent: str
    page_url: str
    referrer: str
    answered: str
    completion_seconds: int | None
    fingerprint: int
    submitted_by: str | None
    conversation_id: str | None
    flags: list[str]
    events: str
    max_submissions: int | None
    is_dispatched: bool
    work_id: str


class SubmissionFilter(msgspec.Struct, frozen=True):
    form_id: str
    status: SubmissionStatus | None = None
    after: datetime | None = None
    before: datetime | None = None
    search: str | None = None


async def lock_count(tx: Tx, tenant: str, form_id: str) -> None:
    await fast.execute(tx, tenant, _LOCK_COUNT, form_id)


async def insert(tx: Tx, tenant: str, row: NewRow) -> Row | None:
    """None when the form takes no more submissions."""
    return await fast.row(tx, tenant, _INSERT, *msgspec.structs.astuple(row))


async def set_execution(tx: Tx, tenant: str, submission_id: str, execution_id: str) -> None:
    await fast.execute(tx, tenant, _SET_EXECUTION, submission_id, execution_id)


async def list_page(tx: Tx, filters: SubmissionFilter, page: Page) -> tuple[list[Row], Total]:
    where = build_where(tx, filters)
    order = "s.created_at DESC, s.id DESC"
    return await paging.fetch_rows(
        tx, _LISTED_COLUMNS, _SOURCE, where, order, page, tenant_is_implied=True
    )


def build_where(tx: Tx, filters: SubmissionFilter) -> Where:
    where = Where(tenant_of(tx), "f.deleted_at IS NULL", tenant_column="s.tenant_id")
    where.add("s.form_id = $n", filters.form_id)
    where.equal("s.status", filters.status)
    where.between("s.created_at", filters.after, filters.before)
    if filters.search:
        where.add(_SEARCH, filters.search)
    return where


async def find_created_at(tx: Tx, form_id: str, submission_id: str) -> datetime | None:
    moment: datetime | None = await fast.value(
        tx, tenant_of(tx), _FIND_CREATED_AT, form_id, submission_id
    )
    return moment


async def list_after(
    tx: Tx,
    filters: SubmissionFilter,
    after: tuple[datetime, str] | None,
    *,
    limit: int,
    max_bytes: int,
) -> list[Row]:
    """Returns submissions in the order of their times, after one of them, with their answers as
    JSON: at least one, and no more once they are longer than `max_bytes`.
    """
    where = build_where(tx, filters)
    if after is not None:
        moment, submission_id = where.bind(after[0]), where.bind(after[1])
        where.require(f"(s.created_at, s.id) > ({moment}, {submission_id})")
    return await fast.rows(
        tx,
        where.tenant,
        f"""SELECT * FROM (
            SELECT p.*, sum(octet_length(p.data)) OVER (ORDER BY p.created_at, p.id)
                        - octet_length(p.data) AS bytes_before
            FROM (
                SELECT s.id, s.created_at, s.status, s.version, s.data::text AS data, s.source
                FROM {_SOURCE} WHERE {where.sql} ORDER BY s.created_at, s.id LIMIT {limit}
            ) p
        ) x WHERE bytes_before < {max_bytes} ORDER BY created_at, id""",
        *where.args,
    )


async def find(tx: Tx, form_id: str, submission_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND, form_id, submission_id)


def build_fields(row: Row) -> dict[str, Any]:
    """Returns the fields of a submission's view. Keys of the caller never replace ours."""
    own = {name: row[name] for name in _OWN_METADATA}
    is_omitted = row["data"] is None
    view = _VIEW.build(
        row,
        data=row["data"] or {},
        is_omitted=is_omitted,
        metadata={**row["custom_metadata"], **own},
    )
    return msgspec.structs.asdict(view)


async def lock(tx: Tx, form_id: str, submission_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _LOCK, form_id, submission_id)


async def set_status(tx: Tx, tenant: str, submission_id: str, status: str) -> None:
    await fast.execute(tx, tenant, _SET_STATUS, submission_id, status)


async def delete(tx: Tx, tenant: str, form_id: str, submission_id: str) -> None:
    """Its files are deleted soon."""
    await fast.execute(tx, tenant, _DELETE, form_id, submission_id)
