"""SQL of documents that came from a source."""

from db import fast
from db.fast import Row
from db.session import Tx

from .queries import METADATA

_OF_SOURCE = "tenant_id = $1 AND source_id = $2 AND deleted_at IS NULL"
_LIST = f"""
SELECT id, work_id FROM documents
WHERE {_OF_SOURCE} AND ($3::text[] IS NULL OR source_url = ANY($3))
"""
_HIDE = """
UPDATE documents SET deleted_at = now(), work_id = $3
WHERE tenant_id = $1 AND id = ANY($2) AND deleted_at IS NULL
RETURNING id, name, file_key
"""
_CHANGE = f"""
UPDATE documents d
SET ({METADATA}) = (SELECT {METADATA} FROM jsonb_populate_record(d, $3::jsonb))
WHERE {_OF_SOURCE} AND ($4::text IS NULL OR source_url = $4)
"""
_FIND_METADATA = f"""
SELECT row_to_json(m)::text FROM (
    SELECT {METADATA} FROM documents WHERE {_OF_SOURCE} AND source_url = $3
) m
"""
_LIST_ADDRESSES = """
SELECT id, source_url FROM documents
WHERE tenant_id = $1 AND id = ANY($2) AND source_url LIKE 'http%'
"""


async def list_ids(tx: Tx, tenant: str, source_id: str, urls: list[str] | None) -> list[Row]:
    """Returns the documents of these addresses, or all of the source, with their work."""
    return await fast.rows(tx, tenant, _LIST, source_id, urls)


async def hide(tx: Tx, tenant: str, document_ids: list[str], work_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _HIDE, document_ids, work_id)


async def change(
    tx: Tx, tenant: str, source_id: str, metadata: str, url: str | None = None
) -> None:
    """Sets the columns that are in the JSON of the metadata."""
    await fast.execute(tx, tenant, _CHANGE, source_id, metadata, url)


async def find_metadata(tx: Tx, tenant: str, source_id: str, url: str) -> str | None:
    """Returns JSON of the columns."""
    metadata: str | None = await fast.value(tx, tenant, _FIND_METADATA, source_id, url)
    return metadata


async def list_addresses(tx: Tx, tenant: str, document_ids: list[str]) -> dict[str, str]:
    """Returns the addresses of those that are pages of the web. Readers need not know where others
    are kept.
    """
    rows = await fast.rows(tx, tenant, _LIST_ADDRESSES, document_ids)
    return {row["id"]: row["source_url"] for row in rows}
