"""SQL of agents, their versions and their sub-agents."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import select

from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Agent, AgentVersion, SubAgent
from db.session import Tx
from db.views import View

from .schemas import (
    AgentSummary,
    DirectSubAgentView,
    FullAgent,
    LogSettings,
    SubAgentView,
    VersionView,
)

# The fields that a version stores: those that change how an agent answers.
BEHAVIOUR: Final = ("primary_model", "system_prompt", "temperature", "max_tokens")
_MAX_USABLE = 1000
_SORT_ORDERS = SortOrders(
    "-created_at",
    Agent.id,
    name=Agent.name,
    status=Agent.status,
    created_at=Agent.created_at,
    updated_at=Agent.updated_at,
)

_SUMMARY = View(AgentSummary)
_FULL = View(
    FullAgent,
    "a",
    tools="""
    (SELECT coalesce(json_agg(json_build_object('id', t.id, 'name', t.name,
                                                'tool_type', t.tool_type,
                                                'is_enabled', x.is_enabled)
                              ORDER BY x.display_order, x.attached_at, x.id), '[]')
     FROM agent_tools x JOIN tools t ON t.id = x.tool_id AND t.tenant_id = x.tenant_id
     WHERE x.agent_id = a.id AND x.tenant_id = a.tenant_id)""",
    knowledge_base="""
    (SELECT json_build_object('enabled', coalesce(sum(d.chunk_count), 0) > 0,
                              'document_count', count(*),
                              'chunk_count', coalesce(sum(d.chunk_count), 0))
     FROM documents d
     WHERE d.tenant_id = a.tenant_id AND d.agent_id = a.id AND d.deleted_at IS NULL)""",
    sub_agents="""
    (SELECT coalesce(json_agg(json_build_object('id', c.id, 'name', c.name,
                                                'relationship_type', s.relationship_type)
                              ORDER BY s.created_at, s.id), '[]')
     FROM sub_agents s JOIN agents c ON c.id = s.child_id AND c.tenant_id = s.tenant_id
     WHERE s.agent_id = a.id AND s.tenant_id = a.tenant_id)""",
)
_VERSION = View(VersionView)
_LOG_SETTINGS = View(LogSettings)
_SUB_AGENT = View(SubAgentView, "s", id="c.id", name="c.name")
_DIRECT_SUB_AGENT = View(
    DirectSubAgentView,
    "c",
    relationship_type="s.relationship_type",
    is_enabled="s.is_enabled",
    delegation_prompt="s.delegation_prompt",
)
_FROM_SUB_AGENTS = """
FROM sub_agents s JOIN agents c ON c.id = s.child_id AND c.tenant_id = s.tenant_id
WHERE ($1::text IS NULL OR s.tenant_id = $1) AND s.agent_id = $2
"""

_FIND = f"""
SELECT {_FULL.columns} FROM agents a WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.id = $2
"""
_FIND_LOG_SETTINGS = f"""
SELECT {_LOG_SETTINGS.columns} FROM agents WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""
_FIND_NAME = "SELECT name FROM agents WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"
_FIND_EXISTING_IDS = "SELECT id FROM agents WHERE tenant_id = $1 AND id = ANY($2)"
_LIST_TWO_VERSIONS = """
SELECT version, primary_model, system_prompt, temperature, max_tokens FROM agent_versions
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND version IN ($3, $4)
"""
_LIST_SUB_AGENTS = f"""
SELECT {_SUB_AGENT.columns} {_FROM_SUB_AGENTS} ORDER BY s.created_at, s.id
"""
_FIND_SUB_AGENT = f"SELECT {_SUB_AGENT.columns} {_FROM_SUB_AGENTS} AND s.child_id = $3"
_FIND_DIRECT_SUB_AGENT = f"""
SELECT {_DIRECT_SUB_AGENT.columns} {_FROM_SUB_AGENTS}
  AND s.child_id = $3 AND s.relationship_type = 'direct'
"""
_LIST_USABLE = f"""
SELECT id, tenant_id, name, created_at FROM agents
WHERE ($1::text IS NULL OR tenant_id = $1) AND parent_id IS NULL AND status <> 'archived'
  AND ($2::text[] IS NULL OR id = ANY($2))
ORDER BY created_at DESC, id DESC LIMIT {_MAX_USABLE}
"""

# Includes the provider's key, so that a turn needs only one query.
_SELECT_RUNTIME = """
SELECT a.id, a.tenant_id, a.name, a.status, a.version, a.primary_model, a.provider, a.system_prompt,
       a.temperature, a.max_tokens, a.log_messages, a.log_tool_calls, a.log_token_usage,
       k.id AS key_id, k.api_key, k.base_url,
       (SELECT json_agg(json_build_object('id', c.id, 'name', c.name, 'status', c.status,
                                          'description', c.description,
                                          'delegation_prompt', s.delegation_prompt,
                                          'has_tools', (
                            WITH RECURSIVE below(id) AS (
                                SELECT s.child_id
                                UNION
                                SELECT n.child_id FROM sub_agents n JOIN below b
                                ON n.tenant_id = a.tenant_id AND n.agent_id = b.id AND n.is_enabled
                            )
                            SELECT EXISTS (SELECT 1 FROM agent_tools x JOIN below b
                                           ON x.tenant_id = a.tenant_id AND x.agent_id = b.id
                                           AND x.is_enabled)
                        )) ORDER BY s.created_at, s.id)
        FROM sub_agents s JOIN agents c ON c.id = s.child_id AND c.tenant_id = s.tenant_id
        WHERE s.agent_id = a.id AND s.tenant_id = a.tenant_id
          AND s.is_enabled AND c.status <> 'archived')::text AS sub_agents,
       (SELECT json_agg(json_build_object('id', t.id, 'name', t.name, 'slug', t.slug,
                                          'description', t.description, 'tool_type', t.tool_type,
                                          'input_schema', t.input_schema)
                        ORDER BY x.display_order, x.attached_at, x.id)
        FROM agent_tools x JOIN tools t ON t.id = x.tool_id AND t.tenant_id = x.tenant_id
        WHERE x.agent_id = a.id AND x.tenant_id = a.tenant_id
          AND x.is_enabled AND t.is_enabled)::text AS tools,
       (SELECT json_build_object('agent_id', a.id, 'generation', b.generation,
                                 'revision', b.revision, 'embedding_model', b.embedding_model,
                                 'languages', b.languages, 'encoders', b.encoders,
                                 'is_refined', NOT EXISTS (
                            SELECT 1 FROM documents d
                            WHERE d.tenant_id = a.tenant_id AND d.agent_id = a.id
                              AND d.refined_count < d.chunk_count AND d.deleted_at IS NULL
                        ),
                                 'has_addresses', EXISTS (
                            SELECT 1 FROM documents d
                            WHERE d.tenant_id = a.tenant_id AND d.agent_id = a.id
                              AND d.source_url IS NOT NULL
                        ),
                                 'hidden_document_ids', (
                            SELECT coalesce(json_agg(d.id), '[]') FROM documents d
                            WHERE d.tenant_id = a.tenant_id AND d.agent_id = a.id
                              AND d.deleted_at IS NOT NULL
                        ),
                                 'has_invalid', coalesce((
                            SELECT max(greatest(d.valid_from, d.chunk_valid_from)) FROM documents d
                            WHERE d.tenant_id = a.tenant_id AND d.agent_id = a.id
                        ) > now(), false) OR coalesce((
                            SELECT min(least(d.valid_until, d.chunk_valid_until)) FROM documents d
                            WHERE d.tenant_id = a.tenant_id AND d.agent_id = a.id
                        ) <= now(), false), 'settings', coalesce(a.retrieval, '{}'))
        FROM knowledge_bases b
        WHERE b.agent_id = a.id AND b.tenant_id = a.tenant_id AND EXISTS (
            SELECT 1 FROM documents d
            WHERE d.tenant_id = a.tenant_id AND d.agent_id = a.id
              AND d.deleted_at IS NULL AND d.chunk_count > 0
        ))::text AS knowledge,
       (SELECT json_build_object('engine', w.search_engine, 'max_results', w.max_results,
                                 'safe_search', w.safe_search)
        FROM web_search_configs w
        WHERE w.agent_id = a.id AND w.tenant_id = a.tenant_id AND w.enabled)::text AS web_search
"""
_JOIN_PROVIDER_KEY = """
LEFT JOIN provider_keys k
  ON k.tenant_id = a.tenant_id AND k.provider = a.provider AND k.is_default
"""
_RUNTIME_BY_ID = f"""
{_SELECT_RUNTIME} FROM agents a {_JOIN_PROVIDER_KEY}
WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.id = $2
"""
# With the key of another provider than the agent's.
_RUNTIME_OF_PROVIDER = f"""
{_SELECT_RUNTIME} FROM agents a
LEFT JOIN provider_keys k ON k.tenant_id = a.tenant_id AND k.provider = $3 AND k.is_default
WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.id = $2
"""
_SELECT_EMBEDDED = f"""
{_SELECT_RUNTIME}, e.id AS embed_key_id, e.allowed_domains, t.plan, t.limits::text AS limits,
       e.require_session_token, e.require_user_token, e.allow_voice, e.allow_feedback,
       e.allow_attachments, e.max_messages_per_day, e.max_tokens_per_day, e.identity_secret,
       e.last_used_at IS NULL OR e.last_used_at < now() - interval '1 minute' AS is_use_outdated
FROM embed_keys e JOIN tenants t ON t.id = e.tenant_id
JOIN agents a ON a.id = e.agent_id AND a.tenant_id = e.tenant_id
{_JOIN_PROVIDER_KEY}
"""
_EMBEDDED_BY_HASH = f"{_SELECT_EMBEDDED} WHERE e.key_hash = $1"
_EMBEDDED_BY_ID = f"{_SELECT_EMBEDDED} WHERE e.id = $1"

_CAN_REACH = """
WITH RECURSIVE below(id) AS (
    SELECT $2::text
    UNION
    SELECT s.child_id FROM sub_agents s JOIN below b ON s.agent_id = b.id WHERE s.tenant_id = $1
)
SELECT EXISTS (SELECT 1 FROM below WHERE id = $3)
"""

_DESCENDANTS = """
WITH RECURSIVE tree(id, name) AS (
    SELECT id, name FROM agents WHERE tenant_id = $1 AND id = $2
    UNION
    SELECT a.id, a.name FROM agents a JOIN tree t ON a.parent_id = t.id WHERE a.tenant_id = $1
)
SELECT id, name FROM tree
"""
_DELAY_DELETION = "SELECT 1 FROM agents WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE"


async def list_with_descendants(tx: Tx, tenant: str, agent_id: str) -> list[Row]:
    """Returns the agent and all its direct sub-agents, at any depth."""
    return await fast.rows(tx, tenant, _DESCENDANTS, agent_id)


async def find_runtime(tx: Tx, tenant: str | None, agent_id: str) -> Row | None:
    return await fast.row(tx, tenant, _RUNTIME_BY_ID, agent_id)


async def find_runtime_of(tx: Tx, tenant: str | None, agent_id: str, provider: str) -> Row | None:
    """The agent with the key of this provider."""
    return await fast.row(tx, tenant, _RUNTIME_OF_PROVIDER, agent_id, provider)


async def find_embedded_by_hash(tx: Tx, key_hash: str) -> Row | None:
    """Needs no tenant: the key identifies the agent and its tenant."""
    row: Row | None = await (await tx.raw()).fetchrow(_EMBEDDED_BY_HASH, key_hash)
    return row


async def find_embedded_by_id(tx: Tx, key_id: str) -> Row | None:
    """For a key that a signed token names."""
    row: Row | None = await (await tx.raw()).fetchrow(_EMBEDDED_BY_ID, key_id)
    return row


async def can_reach(tx: Tx, tenant: str, start: str, goal: str) -> bool:
    """True when tasks delegated to `start` can reach `goal`."""
    return bool(await fast.value(tx, tenant, _CAN_REACH, start, goal))


async def find_name(tx: Tx, agent_id: str) -> str | None:
    name: str | None = await fast.value(tx, tenant_of(tx), _FIND_NAME, agent_id)
    return name


async def find_existing_ids(tx: Tx, tenant: str, agent_ids: list[str]) -> set[str]:
    return {row["id"] for row in await fast.rows(tx, tenant, _FIND_EXISTING_IDS, agent_ids)}


async def list_page(
    tx: Tx, page: Page, *, search: str | None, status: str | None, sort: str | None
) -> tuple[list[AgentSummary], Total]:
    where = Where(tenant_of(tx), "parent_id IS NULL")
    where.contain(search, "name")
    where.equal("status", status)
    return await paging.fetch(tx, _SUMMARY, "agents", where, _SORT_ORDERS.sql(sort), page)


async def find_full(tx: Tx, agent_id: str) -> FullAgent | None:
    return await _FULL.find(tx, tenant_of(tx), _FIND, agent_id)


async def find_log_settings(tx: Tx, agent_id: str) -> LogSettings | None:
    return await _LOG_SETTINGS.find(tx, tenant_of(tx), _FIND_LOG_SETTINGS, agent_id)


async def list_usable(tx: Tx, agent_ids: Collection[str] | None = None) -> list[Row]:
    """Returns those of the agents that can be chatted with, the newest first; without `agent_ids`
    all of them. The list has no pages.
    """
    ids = None if agent_ids is None else list(agent_ids)
    return await fast.rows(tx, tenant_of(tx), _LIST_USABLE, ids)


async def list_sub_agents(tx: Tx, agent_id: str) -> list[SubAgentView]:
    """Returns an agent's sub-agents, the oldest first."""
    return await _SUB_AGENT.list(tx, tenant_of(tx), _LIST_SUB_AGENTS, agent_id)


async def find_sub_agent(tx: Tx, agent_id: str, child_id: str) -> SubAgentView | None:
    return await _SUB_AGENT.find(tx, tenant_of(tx), _FIND_SUB_AGENT, agent_id, child_id)


async def find_direct_sub_agent(tx: Tx, agent_id: str, child_id: str) -> DirectSubAgentView | None:
    ids = (agent_id, child_id)
    return await _DIRECT_SUB_AGENT.find(tx, tenant_of(tx), _FIND_DIRECT_SUB_AGENT, *ids)


async def list_parents(tx: Tx, agent_ids: list[str]) -> list[Agent]:
    """Returns the other agents that delegate to one of these."""
    parent_ids = select(SubAgent.agent_id).where(SubAgent.child_id.in_(agent_ids))
    statement = select(Agent).where(Agent.id.in_(parent_ids), Agent.id.not_in(agent_ids))
    return list(await (await tx.session()).scalars(statement))


async def list_versions(tx: Tx, agent_id: str, page: Page) -> tuple[list[VersionView], Total]:
    where = Where(tenant_of(tx))
    where.add("agent_id = $n", agent_id)
    return await paging.fetch(
        tx, _VERSION, "agent_versions", where, "version DESC", page, tenant_is_implied=True
    )


async def find_two_versions(
    tx: Tx, agent_id: str, first: int, second: int
) -> dict[int, dict[str, Any]]:
    """Returns the behaviour of those that exist, by version."""
    rows = await fast.rows(tx, tenant_of(tx), _LIST_TWO_VERSIONS, agent_id, first, second)
    return {row["version"]: {name: row[name] for name in BEHAVIOUR} for row in rows}


async def find_version(tx: Tx, agent_id: str, version: int) -> AgentVersion | None:
    statement = select(AgentVersion).where(
        AgentVersion.agent_id == agent_id, AgentVersion.version == version
    )
    row: AgentVersion | None = await (await tx.session()).scalar(statement)
    return row


async def lock_link(tx: Tx, agent_id: str, child_id: str) -> SubAgent | None:
    statement = (
        select(SubAgent)
        .where(SubAgent.agent_id == agent_id, SubAgent.child_id == child_id)
        .with_for_update()
    )
    link: SubAgent | None = await (await tx.session()).scalar(statement)
    return link


# Two concurrent attachments could create a cycle that neither of them sees.
_LOCK_LINK_CHANGES = "SELECT pg_advisory_xact_lock(hashtextextended('sub_agents:' || $1, 0))"


async def lock_link_changes(tx: Tx, tenant: str) -> None:
    await fast.execute(tx, tenant, _LOCK_LINK_CHANGES)


async def delay_deletion(tx: Tx, tenant: str, agent_id: str) -> None:
    """Lets a deletion wait for this transaction."""
    await fast.execute(tx, tenant, _DELAY_DELETION, agent_id)
