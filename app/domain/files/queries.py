"""SQL of stored files."""

from db import fast
from db.session import Tx

_FIND_UNKNOWN = """
SELECT wanted.id FROM unnest($2::text[]) WITH ORDINALITY AS wanted(id, position)
WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.tenant_id = $1 AND f.id = wanted.id)
ORDER BY wanted.position
"""


async def find_unknown_ids(tx: Tx, tenant_id: str, file_ids: list[str]) -> list[str]:
    return [row["id"] for row in await fast.rows(tx, tenant_id, _FIND_UNKNOWN, file_ids)]
