"""SQL of drafts."""

from datetime import datetime
from typing import Any

from app.kit.texts import as_json
from db import fast
from db.session import Tx
from db.views import View

from .submission_schemas import DraftView

_VIEW = View(DraftView)
_INSERT = f"""
INSERT INTO form_drafts (tenant_id, id, form_id, version, token_hash, data, stopped_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8) RETURNING {_VIEW.columns}
"""
_UPDATE = f"""
UPDATE form_drafts
SET version = $4, data = $5::json, stopped_at = $6, updated_at = now(), expires_at = $7
WHERE tenant_id = $1 AND form_id = $2 AND token_hash = $3 AND expires_at > now()
RETURNING {_VIEW.columns}
"""
_FIND = f"""
SELECT {_VIEW.columns} FROM form_drafts
WHERE tenant_id = $1 AND form_id = $2 AND token_hash = $3 AND expires_at > now()
"""
_DELETE = "DELETE FROM form_drafts WHERE tenant_id = $1 AND form_id = $2 AND token_hash = $3"


async def insert(tx: Tx, tenant: str, *values: object) -> DraftView | None:
    """The values are those of the statement, from id to expires_at."""
    return await _VIEW.find(tx, tenant, _INSERT, *values)


async def update(
    tx: Tx,
    tenant: str,
    form_id: str,
    token_hash: str,
    version: int,
    data: dict[str, Any],
    stopped_at: str | None,
    expires_at: datetime,
) -> DraftView | None:
    values = (form_id, token_hash, version, as_json(data), stopped_at, expires_at)
    return await _VIEW.find(tx, tenant, _UPDATE, *values)


async def find(tx: Tx, tenant: str, form_id: str, token_hash: str) -> DraftView | None:
    return await _VIEW.find(tx, tenant, _FIND, form_id, token_hash)


async def delete(tx: Tx, tenant: str, form_id: str, token_hash: str) -> None:
    await fast.execute(tx, tenant, _DELETE, form_id, token_hash)
