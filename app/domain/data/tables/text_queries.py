"""SQL that reads values of the newest rows as texts."""

from collections.abc import Sequence
from typing import Final

from db import fast
from db.session import Tx

# As `str.strip` removes them.
_SPACES: Final = "".join(chr(code) for code in range(1, 0x3001) if chr(code).isspace())
# Joining the values with an empty object makes a plain copy of a compressed row, once for all its
# columns.
_NEWEST: Final = """
(SELECT r.id, r.values || '{}'::jsonb AS v FROM data_rows r
 WHERE r.tenant_id = $1 AND r.table_id = $2 ORDER BY r.id DESC LIMIT $3) x
CROSS JOIN unnest($4::text[]) WITH ORDINALITY AS k(key, n)
"""
# A number has no zeros at its end. Lists, objects and missing values have no text.
_TEXT: Final = """
CASE jsonb_typeof(x.v -> k.key)
    WHEN 'string' THEN btrim(x.v ->> k.key, $5)
    WHEN 'number' THEN trim_scale((x.v ->> k.key)::numeric)::text
    WHEN 'boolean' THEN x.v ->> k.key
END
"""
_LIST: Final = f"""
SELECT array_agg(coalesce(left({_TEXT}, $6), '') ORDER BY k.n) AS texts
FROM {_NEWEST} GROUP BY x.id ORDER BY x.id DESC
"""
_FIND: Final = f"""
SELECT DISTINCT k.n, w.text FROM {_NEWEST} JOIN unnest($6::text[]) AS w(text) ON w.text = {_TEXT}
"""


async def list_texts(
    tx: Tx, tenant: str, table_id: str, keys: Sequence[str], *, limit: int, max_chars: int
) -> list[list[str]]:
    """Returns the values of columns in the newest rows, the newest row first."""
    args = (table_id, limit, list(keys), _SPACES, max_chars)
    return [row["texts"] for row in await fast.rows(tx, tenant, _LIST, *args)]


async def find_texts(
    tx: Tx, tenant: str, table_id: str, keys: Sequence[str], texts: Sequence[str], *, limit: int
) -> list[set[str]]:
    """Returns for each column which of the texts the newest rows have in it."""
    found: list[set[str]] = [set() for _ in keys]
    args = (table_id, limit, list(keys), _SPACES, list(texts))
    for row in await fast.rows(tx, tenant, _FIND, *args):
        found[row["n"] - 1].add(row["text"])
    return found
