"""SQL of embed keys and of their daily usage."""

from typing import Final

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page
from db import fast
from db.fast import tenant_of
from db.lists import Total, Where
from db.models import EmbedKey
from db.session import Tx
from db.views import View

from .schemas import EmbedKeyView

MAX_KEYS: Final = 100
_TODAY = "(now() AT TIME ZONE 'utc')::date"
_VIEW = View(
    EmbedKeyView,
    "k",
    has_identity_secret="k.identity_secret IS NOT NULL",  # noqa: S106  # SQL
    messages_today="coalesce(u.messages, 0)",
    tokens_today="coalesce(u.tokens, 0)",
)
_FROM = f"""
embed_keys k LEFT JOIN embed_key_usage u
    ON u.tenant_id = k.tenant_id AND u.embed_key_id = k.id AND u.day = {_TODAY}
"""
_FIND = f"""
SELECT {_VIEW.columns} FROM {_FROM} WHERE ($1::text IS NULL OR k.tenant_id = $1) AND k.id = $2
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
_TAKE_MESSAGE = f"""
INSERT INTO embed_key_usage AS u (tenant_id, embed_key_id, day, messages)
SELECT k.tenant_id, k.id, {_TODAY}, 1 FROM embed_keys k
WHERE k.tenant_id = $1 AND k.id = $2
ON CONFLICT (embed_key_id, day) DO UPDATE SET messages = u.messages + 1
WHERE ($3::int IS NULL OR u.messages < $3) AND ($4::bigint IS NULL OR u.tokens < $4)
"""
_RETURN_MESSAGE = f"""
UPDATE embed_key_usage SET messages = messages - 1
WHERE tenant_id = $1 AND embed_key_id = $2 AND day = {_TODAY} AND messages > 0
"""
_ADD_TOKENS = f"""
INSERT INTO embed_key_usage AS u (tenant_id, embed_key_id, day, tokens)
SELECT k.tenant_id, k.id, {_TODAY}, $3::bigint FROM embed_keys k
WHERE k.tenant_id = $1 AND k.id = $2
ON CONFLICT (embed_key_id, day) DO UPDATE SET tokens = u.tokens + excluded.tokens
"""


async def allows_any(tx: Tx, agent_id: str, entries: list[str]) -> bool:
    """True when a key of the agent has one of the entries, or no entries at all."""
    return bool(await (await tx.raw()).fetchval(_ALLOWS_ANY, agent_id, entries))


async def mark_used(tx: Tx, tenant: str, key_id: str) -> None:
    await fast.execute(tx, tenant, _MARK_USED, key_id)


async def take_message(
    tx: Tx, tenant: str, key_id: str, max_messages: int | None, max_tokens: int | None
) -> bool:
    """Counts a message of today; False, without counting, when one of the limits is reached."""
    return await fast.execute(tx, tenant, _TAKE_MESSAGE, key_id, max_messages, max_tokens) == 1


async def return_message(tx: Tx, tenant: str, key_id: str) -> None:
    await fast.execute(tx, tenant, _RETURN_MESSAGE, key_id)


async def add_tokens(tx: Tx, tenant: str, key_id: str, tokens: int) -> None:
    await fast.execute(tx, tenant, _ADD_TOKENS, key_id, tokens)


async def check_quota(tx: Tx, agent_id: str) -> None:
    condition = EmbedKey.agent_id == agent_id
    await quota.check(tx, EmbedKey, MAX_KEYS, "embed keys", condition, owner="An agent")


async def list_page(tx: Tx, page: Page, agent_id: str | None) -> tuple[list[EmbedKeyView], Total]:
    where = Where(tenant_of(tx), tenant_column="k.tenant_id")
    where.equal("k.agent_id", agent_id or None)
    return await paging.fetch(
        tx,
        _VIEW,
        _FROM,
        where,
        "k.created_at DESC, k.id DESC",
        page,
        tenant_is_implied=bool(agent_id),
    )


async def find_view(tx: Tx, key_id: str) -> EmbedKeyView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, key_id)
