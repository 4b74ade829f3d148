from db.session import Tx

_WELCOME = """
SELECT EXISTS (
    SELECT 1 FROM embed_keys
    WHERE ($1::text IS NULL OR agent_id = $1)
      AND (allowed_domains = '{}' OR allowed_domains && $2::varchar[])
)
"""


async def is_welcome(tx: Tx, agent_id: str | None, entries: list[str]) -> bool:
    """True when some key, of the agent or of anybody, may be used by who matches the entries."""
    return bool(await (await tx.raw()).fetchval(_WELCOME, agent_id, entries))
