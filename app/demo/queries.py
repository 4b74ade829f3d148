"""SQL of the demo: the first super_admin, and what the instance remembers of the demo."""

import msgspec

from db.fast import Row
from db.locks import AdvisoryLock
from db.session import Tx

_KEY = "demo"
_LOCK = f"SELECT pg_advisory_xact_lock({AdvisoryLock.CREATE_DEMO:d})"
_FIND_ADMIN = """
SELECT id, tenant_id FROM users WHERE role = 'super_admin' ORDER BY created_at, id LIMIT 1
"""
_HAS_AGENTS = "SELECT EXISTS (SELECT 1 FROM agents WHERE tenant_id = $1)"
_LOAD = "SELECT value FROM instance_state WHERE key = $1"
_STORE = """
INSERT INTO instance_state (key, value) VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value
"""


class DemoRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was created for the demo, whether or not it still exists.

    The embed key is derived from the root key `kid`, so that the page knows it.
    """

    tenant_id: str
    user_id: str
    agent_id: str
    form_slug: str
    embed_key_id: str
    kid: str
    has_documents: bool = False


async def lock(tx: Tx) -> None:
    """Lets one process at a time create or change the demo, until the transaction ends."""
    await (await tx.raw()).execute(_LOCK)


async def find_admin(tx: Tx) -> Row | None:
    row: Row | None = await (await tx.raw()).fetchrow(_FIND_ADMIN)
    return row


async def has_agents(tx: Tx, tenant_id: str) -> bool:
    return bool(await (await tx.raw()).fetchval(_HAS_AGENTS, tenant_id))


async def load(tx: Tx) -> DemoRecord | None:
    value = await (await tx.raw()).fetchval(_LOAD, _KEY)
    return msgspec.json.decode(value, type=DemoRecord) if value else None


async def store(tx: Tx, record: DemoRecord) -> None:
    await (await tx.raw()).execute(_STORE, _KEY, msgspec.json.encode(record).decode())
