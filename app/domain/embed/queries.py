from db.session import Tx

_WELCOME = """
SELECT EXISTS (
    SELECT 1 FROM embed_keys
    WHERE agent_id = $1
      AND (allowed_domains = '{}' OR allowed_domains && $2::varchar[])
)
"""


async def is_welcome(tx: Tx, agent_id: str, entries: list[str]) -> bool:
    """True when some key of the agent may be used by who matches the entries."""
    return bool(await (await tx.raw()).fetchval(_WELCOME, agent_id, entries))
