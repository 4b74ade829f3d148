"""The agents' SQL that every turn runs."""

from db import fast
from db.fast import Row
from db.session import Tx

# The provider's key comes along: a turn must not cost a second way to the database.
_BRAIN = """
SELECT a.id, a.tenant_id, a.name, a.status, a.primary_model, a.provider, a.system_prompt,
       a.temperature, a.max_tokens, a.log_messages, a.log_tool_calls, a.log_token_usage,
       k.id AS key_id, k.api_key, k.base_url,
       (SELECT json_agg(json_build_object('id', c.id, 'name', c.name, 'status', c.status,
                                          'description', c.description,
                                          'delegation_prompt', s.delegation_prompt,
                                          'acts', (
                            WITH RECURSIVE below(id) AS (
                                SELECT s.child_id
                                UNION
                                SELECT n.child_id FROM sub_agents n JOIN below b
                                ON n.agent_id = b.id AND n.is_enabled
                            )
                            SELECT EXISTS (SELECT 1 FROM agent_tools x JOIN below b
                                           ON x.agent_id = b.id AND x.is_enabled)
                        )) ORDER BY s.created_at, s.id)
        FROM sub_agents s JOIN agents c ON c.id = s.child_id
        WHERE s.agent_id = a.id AND c.tenant_id = a.tenant_id
          AND s.is_enabled AND c.status <> 'archived')::text AS children,
       (SELECT json_agg(json_build_object('id', t.id, 'name', t.name, 'slug', t.slug,
                                          'description', t.description, 'tool_type', t.tool_type,
                                          'input_schema', t.input_schema)
                        ORDER BY x.display_order, x.attached_at, x.id)
        FROM agent_tools x JOIN tools t ON t.id = x.tool_id
        WHERE x.agent_id = a.id AND t.tenant_id = a.tenant_id
          AND x.is_enabled AND t.is_enabled)::text AS abilities
"""
_KEY = """
LEFT JOIN provider_keys k
  ON k.tenant_id = a.tenant_id AND k.provider = a.provider AND k.is_default
"""
_BY_ID = f"{_BRAIN} FROM agents a {_KEY} WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.id = $2"
_BY_EMBED_KEY = f"""
{_BRAIN}, e.id AS embed_key_id, e.allowed_domains, t.plan, t.limits::text AS limits
FROM embed_keys e JOIN agents a ON a.id = e.agent_id JOIN tenants t ON t.id = e.tenant_id {_KEY}
WHERE e.key_hash = $1
"""

_REACHES = """
WITH RECURSIVE below(id) AS (
    SELECT $2::text
    UNION
    SELECT s.child_id FROM sub_agents s JOIN below b ON s.agent_id = b.id WHERE s.tenant_id = $1
)
SELECT EXISTS (SELECT 1 FROM below WHERE id = $3)
"""

_DESCENDANTS = """
WITH RECURSIVE made(id, name) AS (
    SELECT id, name FROM agents WHERE tenant_id = $1 AND id = $2
    UNION
    SELECT a.id, a.name FROM agents a JOIN made m ON a.parent_id = m.id WHERE a.tenant_id = $1
)
SELECT id, name FROM made
"""


async def with_descendants(tx: Tx, tenant: str, agent_id: str) -> list[Row]:
    """The agent, and those that were made for it or for one of them."""
    return await fast.rows(tx, tenant, _DESCENDANTS, agent_id)


async def brain(tx: Tx, tenant: str | None, agent_id: str) -> Row | None:
    return await fast.row(tx, tenant, _BY_ID, agent_id)


async def brain_by_embed_key(tx: Tx, key_hash: str) -> Row | None:
    """The key itself says whose agent it is, so no tenant is asked for."""
    found: Row | None = await (await tx.raw()).fetchrow(_BY_EMBED_KEY, key_hash)
    return found


async def reaches(tx: Tx, tenant: str, start: str, goal: str) -> bool:
    """True when tasks handed to `start` could end up at `goal`."""
    return bool(await fast.value(tx, tenant, _REACHES, start, goal))
