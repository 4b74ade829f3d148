"""SQL of forms as visitors meet them."""

from typing import Final

from app.domain.forms.definition.queries import load_fields
from db import fast
from db.fast import Row
from db.session import Tx

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


async def find_by_slug(tx: Tx, slug: str) -> Row | None:
    form: Row | None = await (await tx.raw()).fetchrow(_BY_SLUG, slug)
    return form


async def find(tx: Tx, tenant: str | None, form_id: str) -> Row | None:
    return await fast.row(tx, tenant, _BY_ID, form_id)
