"""SQL of forms and their versions. A deleted form is part of no answer."""

from collections.abc import Sequence
from typing import Any, Final

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Form
from db.session import Tx
from db.views import View

from .fields import links
from .fields.registry import STATIC_TYPES
from .recipient_queries import allowed_sql
from .schemas import FormSummary, FormVersionSummary, FormVersionView, FormView

MAX_FORMS = 1000
MAX_VERSIONS = 200
_SORT_ORDERS = SortOrders(
    "-created_at",
    Form.id,
    name=Form.name,
    status=Form.status,
    created_at=Form.created_at,
    updated_at=Form.updated_at,
    published_at=Form.published_at,
)


def count_sql(form: str) -> str:
    """Returns the number of submissions of a form with this alias or name."""
    return (
        "(SELECT coalesce(sum(c.submissions), 0)::bigint FROM form_counts c "
        f"WHERE c.form_id = {form}.id AND c.tenant_id = {form}.tenant_id)"
    )


_VIEWS = """
(SELECT coalesce(sum(v.views), 0)::bigint FROM form_views v
 WHERE v.form_id = f.id AND v.tenant_id = f.tenant_id)"""
_SUMMARY = View(FormSummary, submission_count=count_sql("forms"))
_EMAIL = "f.settings #>> '{notifications,email}'"
_UNCONFIRMED = f"""
CASE WHEN {_EMAIL} IS NOT NULL AND NOT {allowed_sql("f.tenant_id", _EMAIL)}
     THEN ARRAY[{_EMAIL}] ELSE '{{}}' END"""
_VIEW = View(FormView, "f", computed=("stats",), fields="v.fields", unconfirmed_emails=_UNCONFIRMED)
_VERSION_SUMMARY = View(FormVersionSummary)
_VERSION = View(FormVersionView, "v")
_NOT_DELETED = "deleted_at IS NULL"
_SELECT_VIEW = f"""
SELECT f.tenant_id, {_VIEW.columns}, {count_sql("f")} AS submissions, {_VIEWS} AS views FROM forms f
JOIN form_versions v ON v.tenant_id = f.tenant_id AND v.form_id = f.id AND v.version = f.version
WHERE ($1::text IS NULL OR f.tenant_id = $1) AND f.deleted_at IS NULL
"""
_FIND = f"{_SELECT_VIEW} AND f.id = $2"
_FIND_BY_SLUG = f"{_SELECT_VIEW} AND f.slug = $2"
_EXISTS = """
SELECT 1 FROM forms
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND deleted_at IS NULL
"""
_FIND_VERSION = f"""
SELECT {_VERSION.columns} FROM form_versions v
JOIN forms f ON f.tenant_id = v.tenant_id AND f.id = v.form_id
WHERE ($1::text IS NULL OR v.tenant_id = $1) AND v.form_id = $2 AND v.version = $3
  AND f.deleted_at IS NULL
"""
_LOAD_FIELDS = """
SELECT fields::text AS fields, published_at FROM form_versions
WHERE tenant_id = $1 AND form_id = $2 AND version = $3
"""
# The fields of versions, which have the alias v.
_FIELDS = """
CROSS JOIN ROWS FROM (json_to_recordset(v.fields) AS (id text, type text, label text))
    WITH ORDINALITY AS f(id, type, label, n)
"""
_LIST_COLUMNS = f"""
SELECT id, left(regexp_replace(label, $6, '\\1', 'g'), $4) AS label FROM (
    SELECT DISTINCT ON (f.id) f.id, f.label, v.version, f.n
    FROM (
        SELECT version, fields FROM form_versions
        WHERE tenant_id = $1 AND form_id = $2 AND published_at IS NOT NULL
        ORDER BY version DESC LIMIT {MAX_VERSIONS}
    ) v {_FIELDS} WHERE f.type <> ALL($3) ORDER BY f.id, v.version DESC
) c ORDER BY version DESC, n LIMIT $5
"""
_LIST_INPUTS = f"""
SELECT v.version, array_agg(f.id ORDER BY f.n) AS ids FROM form_versions v {_FIELDS}
WHERE v.tenant_id = $1 AND v.form_id = $2 AND f.type <> ALL($3) AND v.version = ANY($4)
GROUP BY v.version
"""
# A version that was never published is changed in place: nothing refers to it.
_STORE_VERSION = """
INSERT INTO form_versions AS v
    (tenant_id, id, form_id, version, fields, created_by, published_at)
VALUES ($1, $2, $3, $4, $5::json, $6, CASE WHEN $7 THEN now() END)
ON CONFLICT (form_id, version) DO UPDATE
SET fields = excluded.fields, created_by = excluded.created_by, created_at = now()
"""
_PUBLISH_VERSION = """
UPDATE form_versions SET published_at = coalesce(published_at, now())
WHERE tenant_id = $1 AND form_id = $2 AND version = $3
"""
_RELEASE_UPLOADS = """
UPDATE form_uploads SET expires_at = now()
WHERE tenant_id = $1 AND form_id = $2 AND submission_id IS NULL
"""

build_view = _VIEW.build


async def list_page(
    tx: Tx, page: Page, *, search: str | None, status: str | None, sort: str | None
) -> tuple[list[FormSummary], Total]:
    where = Where(tenant_of(tx), _NOT_DELETED)
    where.contain(search, "name", "description", "slug")
    where.equal("status", status)
    return await paging.fetch(tx, _SUMMARY, "forms", where, _SORT_ORDERS.sql(sort), page)


async def find(tx: Tx, form_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND, form_id)


async def find_by_slug(tx: Tx, slug: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_BY_SLUG, slug)


async def find_row(tx: Tx, form_id: str, *, for_delete: bool = False) -> Form | None:
    """Locks the form. Submissions can be accepted meanwhile, except with `for_delete`."""
    session = await tx.session()
    lock: Any = True if for_delete else {"key_share": True}
    form = await session.get(Form, form_id, with_for_update=lock)
    return form if form is not None and form.deleted_at is None else None


async def exists(tx: Tx, form_id: str) -> bool:
    return await fast.value(tx, tenant_of(tx), _EXISTS, form_id) is not None


async def check_quota(tx: Tx, tenant_id: str) -> None:
    conditions = (Form.tenant_id == tenant_id, Form.deleted_at.is_(None))
    await quota.check(tx, Form, MAX_FORMS, "forms", *conditions)


# Versions


async def load_fields(tx: Tx, tenant: str, form_id: str, version: int) -> Row | None:
    """Returns the fields as JSON text, and when they were published."""
    return await fast.row(tx, tenant, _LOAD_FIELDS, form_id, version)


async def list_columns(
    tx: Tx, tenant: str, form_id: str, *, max_chars: int, limit: int
) -> list[tuple[str, str]]:
    """Returns the ids and labels of fields that are answered, those of the newest version first.
    Links in labels are their texts.
    """
    args = (form_id, STATIC_TYPES, max_chars, limit, links.PATTERN)
    rows = await fast.rows(tx, tenant, _LIST_COLUMNS, *args)
    return [(row["id"], row["label"]) for row in rows]


async def list_inputs(
    tx: Tx, tenant: str, form_id: str, versions: Sequence[int]
) -> dict[int, list[str]]:
    """Returns the ids of the fields of versions that are answered, in their order."""
    rows = await fast.rows(tx, tenant, _LIST_INPUTS, form_id, STATIC_TYPES, list(versions))
    return {row["version"]: row["ids"] for row in rows}


async def store_version(tx: Tx, tenant: str, *values: object) -> None:
    """The values are those of the statement, from id to whether it is published."""
    await fast.execute(tx, tenant, _STORE_VERSION, *values)


async def publish_version(tx: Tx, tenant: str, form_id: str, version: int) -> None:
    await fast.execute(tx, tenant, _PUBLISH_VERSION, form_id, version)


async def list_versions(tx: Tx, form_id: str, page: Page) -> tuple[list[FormVersionSummary], Total]:
    where = Where(
        tenant_of(tx),
        "EXISTS (SELECT 1 FROM forms f WHERE f.tenant_id = form_versions.tenant_id"
        " AND f.id = form_versions.form_id AND f.deleted_at IS NULL)",
    )
    where.equal("form_id", form_id)
    order = "version DESC"
    return await paging.fetch(
        tx, _VERSION_SUMMARY, "form_versions", where, order, page, tenant_is_implied=True
    )


async def find_version(tx: Tx, form_id: str, version: int) -> FormVersionView | None:
    return await _VERSION.find(tx, tenant_of(tx), _FIND_VERSION, form_id, version)


async def release_uploads(tx: Tx, tenant: str, form_id: str) -> None:
    """The files of a deleted form are deleted soon; those of submissions follow with these."""
    await fast.execute(tx, tenant, _RELEASE_UPLOADS, form_id)


__all__ = ["COLUMNS", "find", "find_by_slug", "load_fields"]

COLUMNS: Final = (
    *("id", "tenant_id", "name", "slug", "description", "status", "version", "settings"),
    *("branding", "workflow_id", "data_table_config", "created_by"),
)
_SELECT = f"""
SELECT {", ".join(f"f.{name}" for name in COLUMNS)}, t.plan, t.limits::text AS limits
FROM forms f JOIN tenants t ON t.id = f.tenant_id WHERE f.deleted_at IS NULL
"""
_BY_SLUG = f"{_SELECT} AND f.slug = $1"
_BY_ID = f"{_SELECT} AND ($1::text IS NULL OR f.tenant_id = $1) AND f.id = $2"


async def find_live_by_slug(tx: Tx, slug: str) -> Row | None:
    form: Row | None = await (await tx.raw()).fetchrow(_BY_SLUG, slug)
    return form


async def find_live(tx: Tx, tenant: str | None, form_id: str) -> Row | None:
    return await fast.row(tx, tenant, _BY_ID, form_id)
