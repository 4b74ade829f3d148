"""Agents, their versions and their log settings."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from app.domain.agents.llm.api import provider_of, require_offered
from app.domain.area import AgentDeletion, Areas
from app.domain.platform.events import api as events
from app.domain.platform.history import api as history
from app.kit import json_diff, paging, validation
from app.kit.changes import apply_changes
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.views import build_view
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.models import Agent, AgentVersion
from db.session import Tx

from . import queries
from .errors import AgentNotFound, VersionNotFound
from .events import AgentCreated, AgentDeleted, AgentPublished, AgentUpdated
from .queries import BEHAVIOUR
from .schemas import (
    AgentSummary,
    AgentView,
    CreateAgent,
    FullAgent,
    KnowledgeBase,
    LogSettings,
    UpdateAgent,
    UpdateLogSettings,
    VersionDiff,
    VersionView,
)

_WRITE_PERMISSION = "agents:write"


_VERSION_PATTERN = re.compile(r"[1-9][0-9]{0,8}")


async def list_page(
    tx: Tx,
    principal: Principal,
    page: Page,
    *,
    search: str | None,
    status: str | None,
    sort: str | None,
) -> Paged[AgentSummary]:
    """Returns agents except direct sub-agents."""
    summaries, total = await queries.list_page(tx, page, search=search, status=status, sort=sort)
    hide_models(principal, summaries)
    return paging.paged(summaries, total, page)


async def find(tx: Tx, agent_id: str, *, for_update: bool = False) -> Agent:
    agent = await (await tx.session()).get(Agent, agent_id, with_for_update=for_update)
    if agent is None:
        raise not_found(agent_id)
    return agent


async def require(tx: Tx, agent_id: str) -> None:
    """Raises AgentNotFound unless the agent exists. An empty list of an agent's things calls it, so
    that a list needs one statement.
    """
    await get_name(tx, agent_id)


async def get_name(tx: Tx, agent_id: str) -> str:
    name = await queries.find_name(tx, agent_id)
    if name is None:
        raise not_found(agent_id)
    return name


def not_found(agent_id: str) -> AgentNotFound:
    return AgentNotFound(f"There is no agent {agent_id[:64]}")


async def get(tx: Tx, principal: Principal, agent_id: str) -> FullAgent:
    agent = await queries.find_full(tx, agent_id)
    if agent is None:
        raise not_found(agent_id)
    return hide_behaviour(principal, agent)


async def create(
    tx: Tx, principal: Principal, data: CreateAgent, *, parent: Agent | None = None
) -> AgentView:
    agent = Agent(
        id=new_id("agt"),
        tenant_id=parent.tenant_id if parent else principal.home,
        parent_id=parent.id if parent else None,
        provider=provider_of(data.primary_model),
        version=1,
        **msgspec.structs.asdict(data),
    )
    if agent.status == "published":
        await require_offered(tx, agent.tenant_id, agent.primary_model)
    session = await tx.session()
    session.add(agent)
    await session.flush()
    await _store_version(tx, agent, principal)
    created = AgentCreated(agent.id, agent.name, agent.status, agent.primary_model)
    await events.emit(tx, created, tenant_id=agent.tenant_id)
    if agent.status == "published":
        published = AgentPublished(agent.id, agent.name)
        await events.emit(tx, published, tenant_id=agent.tenant_id)
    return build_view(AgentView, agent)


async def lock(tx: Tx, agent_id: str) -> AgentView:
    return build_view(AgentView, await find(tx, agent_id, for_update=True))


async def update(tx: Tx, principal: Principal, agent_id: str, data: UpdateAgent) -> AgentView:
    agent = await find(tx, agent_id, for_update=True)
    await change(tx, principal, agent, validation.set_fields(data))
    return build_view(AgentView, agent)


async def change(
    tx: Tx, principal: Principal, agent: Agent, values: dict[str, Any], note: str = ""
) -> None:
    """Sets the fields that differ, stores a version if behaviour changed, and emits events."""
    was_published = agent.status == "published"
    changed = apply_changes(agent, values)
    if not changed:
        return
    if agent.status == "published" and not {"status", "primary_model"}.isdisjoint(changed):
        await require_offered(tx, agent.tenant_id, agent.primary_model)
    if "primary_model" in changed:
        agent.provider = provider_of(agent.primary_model)
    if any(name in BEHAVIOUR for name in changed):
        agent.version += 1
        await _store_version(tx, agent, principal, note)
    await (await tx.session()).flush()
    await emit_updated(tx, agent, changed)
    if not was_published and agent.status == "published":
        published = AgentPublished(agent.id, agent.name)
        await events.emit(tx, published, tenant_id=agent.tenant_id)


async def emit_updated(tx: Tx, agent: Agent, changed: list[str]) -> None:
    """Emits AgentUpdated. Changed tools and sub-agents emit it too, without a new version."""
    updated = AgentUpdated(agent.id, agent.name, agent.status, agent.version, changed)
    await events.emit(tx, updated, tenant_id=agent.tenant_id)


async def delete(tx: Tx, services: Services, agent_id: str) -> None:
    """Deletes the agent, its conversations, keys, versions, attachments and direct sub-agents."""
    areas, cancelled = services.get(Areas), list[str]()
    agent = await find(tx, agent_id)
    _, deletion = await _build_deletion(tx, services, agent, cancelled)
    # Locks work before the agent, in the same order as a worker that finishes a job.
    await areas.before_agents_deleted(deletion)
    agent = await find(tx, agent_id, for_update=True)
    deleted, deletion = await _build_deletion(tx, services, agent, cancelled)
    await areas.before_agents_deleted(deletion)
    parents = await queries.list_parents(tx, deletion.agent_ids)
    session = await tx.session()
    await session.delete(agent)
    await session.flush()
    await areas.after_agents_deleted(deletion)
    for row in deleted:
        history.note(
            tx, "agent", row["id"], row["name"], tenant_id=agent.tenant_id, action="deleted"
        )
        event = AgentDeleted(row["id"], row["name"])
        await events.emit(tx, event, tenant_id=agent.tenant_id)
    for parent in parents:
        await emit_updated(tx, parent, ["sub_agents"])


async def _build_deletion(
    tx: Tx, services: Services, agent: Agent, cancelled: list[str]
) -> tuple[list[Row], AgentDeletion]:
    """Returns the rows of the agents to delete, and the argument of the areas' hooks."""
    rows = await queries.list_with_descendants(tx, agent.tenant_id, agent.id)
    ids = [row["id"] for row in rows]
    return rows, AgentDeletion(tx, services, agent.tenant_id, ids, cancelled)


# Versions


async def _store_version(tx: Tx, agent: Agent, principal: Principal, note: str = "") -> None:
    behaviour = {name: getattr(agent, name) for name in BEHAVIOUR}
    (await tx.session()).add(
        AgentVersion(
            id=new_id("agv"),
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            version=agent.version,
            created_by=principal.user_id,
            note=note,
            **behaviour,
        )
    )


async def list_versions(tx: Tx, agent_id: str, page: Page) -> Paged[VersionView]:
    versions, total = await queries.list_versions(tx, agent_id, page)
    if not versions:
        await require(tx, agent_id)
    return paging.paged(versions, total, page)


async def restore_version(tx: Tx, principal: Principal, agent_id: str, version: str) -> AgentView:
    """Copies a stored version's behaviour to the agent, as a new version."""
    agent = await find(tx, agent_id, for_update=True)
    stored = await queries.find_version(tx, agent_id, _parse_version(version))
    if stored is None:
        raise _version_not_found(version)
    history.call_action(tx, "restored")
    await change(tx, principal, agent, {name: getattr(stored, name) for name in BEHAVIOUR})
    return build_view(AgentView, agent)


async def diff_versions(tx: Tx, agent_id: str, before: str, after: str) -> VersionDiff:
    """Returns the changes of behaviour from one version to another, in either direction."""
    first, second = _parse_version(before), _parse_version(after)
    versions = await queries.find_two_versions(tx, agent_id, first, second)
    for text, version in ((before, first), (after, second)):
        if version not in versions:
            await require(tx, agent_id)
            raise _version_not_found(text)
    diff = json_diff.diff_bounded(versions[first], versions[second])
    return VersionDiff(first, second, diff.changes, diff.truncated)


def _parse_version(text: str) -> int:
    """Returns 0, which no version has, for a text that is none."""
    return int(text) if _VERSION_PATTERN.fullmatch(text) else 0


def _version_not_found(text: str) -> VersionNotFound:
    return VersionNotFound(f"This agent has no version {text[:20]}")


# Log settings


async def get_log_settings(tx: Tx, agent_id: str) -> LogSettings:
    settings = await queries.find_log_settings(tx, agent_id)
    if settings is None:
        raise not_found(agent_id)
    return settings


async def update_log_settings(
    tx: Tx, principal: Principal, agent_id: str, data: UpdateLogSettings
) -> LogSettings:
    agent = await find(tx, agent_id, for_update=True)
    await change(tx, principal, agent, validation.set_fields(data))
    return build_view(LogSettings, agent)


def hide_models(principal: Principal, agents: Iterable[AgentSummary]) -> None:
    if not principal.may(_WRITE_PERMISSION):
        for agent in agents:
            agent.primary_model, agent.temperature = "", None


def hide_behaviour(principal: Principal, agent: FullAgent) -> FullAgent:
    if not principal.may(_WRITE_PERMISSION):
        agent.primary_model = agent.system_prompt = ""
        agent.temperature = agent.max_tokens = None
        agent.tools, agent.sub_agents = [], []
        agent.knowledge_base = KnowledgeBase()
    return agent
