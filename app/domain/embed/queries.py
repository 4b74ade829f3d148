"""SQL of embed keys."""

from app.domain.embed.schemas import EmbedKeyView
from db import fast
from db.fast import tenant_of
from db.session import Tx
from db.views import View

_VIEW = View(EmbedKeyView)
_LIST = f"""
SELECT {_VIEW.columns} FROM embed_keys
WHERE ($1::text IS NULL OR tenant_id = $1) AND ($2::text IS NULL OR agent_id = $2)
ORDER BY created_at DESC, id DESC
"""

_ALLOWS_ANY = """
SELECT EXISTS (
    SELECT 1 FROM embed_keys
    WHERE agent_id = $1
      AND (allowed_domains = '{}' OR allowed_domains && $2::varchar[])
)
"""
_MARK_USED = """
UPDATE embed_keys SET last_used_at = now()
WHERE tenant_id = $1 AND id = $2
  AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
"""


async def allows_any(tx: Tx, agent_id: str, entries: list[str]) -> bool:
    """True when a key of the agent has one of the entries, or no entries at all."""
    return bool(await (await tx.raw()).fetchval(_ALLOWS_ANY, agent_id, entries))


async def mark_used(tx: Tx, tenant: str, key_id: str) -> None:
    await fast.execute(tx, tenant, _MARK_USED, key_id)


async def list_all(tx: Tx, agent_id: str | None) -> list[EmbedKeyView]:
    return await _VIEW.list(tx, tenant_of(tx), _LIST, agent_id or None)
