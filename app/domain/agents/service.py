"""Agents: their fields, their versions, their log settings."""

import re
from typing import Any

import msgspec
from sqlalchemy import select

from app.domain.agents import queries, telling
from app.domain.agents.errors import AgentNotFound, VersionNotFound
from app.domain.agents.events import AgentCreated, AgentDeleted, AgentPublished, AgentUpdated
from app.domain.agents.schemas import (
    AgentSummary,
    AgentView,
    AttachedTool,
    CreateAgent,
    FullAgent,
    KnowledgeBase,
    LogSettings,
    SubAgentBrief,
    UpdateAgent,
    UpdateLogSettings,
    VersionView,
)
from app.domain.chat import jobs
from app.domain.events import service as events
from app.domain.models.providers import provider_of
from app.domain.tools import privacy as tools
from app.domain.vault import access as vault
from app.http import bodies, paging
from app.http.answers import filled
from app.http.paging import Page, Paged
from app.kit.ids import new_id
from app.kit.work import Doorbell
from app.security.principal import Principal
from db.fast import Row
from db.models import Agent, AgentTool, AgentVersion, SubAgent, Tool
from db.session import Tx

_VERSION = re.compile(r"[1-9][0-9]{0,8}")

_SORTABLE = {
    "name": Agent.name,
    "status": Agent.status,
    "created_at": Agent.created_at,
    "updated_at": Agent.updated_at,
}
_MOST = 1000
# What a version keeps: the fields that change what an agent does.
BEHAVIOUR = ("primary_model", "system_prompt", "temperature", "max_tokens")


async def page_of(
    tx: Tx, page: Page, *, search: str | None, status: str | None, sort: str | None
) -> Paged[AgentSummary]:
    """All but those that were made for one parent alone."""
    wanted = select(Agent).where(Agent.parent_id.is_(None))
    if search:
        wanted = wanted.where(paging.contains(Agent.name, search))
    if status:
        wanted = wanted.where(Agent.status == status)
    ordering = paging.order(sort, _SORTABLE, "-created_at", Agent.id)
    rows, total = await paging.fetch(tx, wanted, page, ordering)
    return paging.paged([filled(AgentSummary, row) for row in rows], total, page)


async def usable(tx: Tx) -> list[Agent]:
    """Those that can be chatted with, the newest first; a list of models has no pages."""
    found = await (await tx.session()).scalars(
        select(Agent)
        .where(Agent.parent_id.is_(None), Agent.status != "archived")
        .order_by(Agent.created_at.desc(), Agent.id.desc())
        .limit(_MOST)
    )
    return list(found)


async def find(tx: Tx, agent_id: str, *, for_update: bool = False) -> Agent:
    found = await (await tx.session()).get(Agent, agent_id, with_for_update=for_update)
    if found is None:
        raise AgentNotFound(f"There is no agent {agent_id[:64]}")
    return found


async def get(tx: Tx, agent_id: str) -> FullAgent:
    agent = await find(tx, agent_id)
    children = await (await tx.session()).execute(
        select(Agent.id, Agent.name, SubAgent.relationship_type)
        .join(SubAgent, SubAgent.child_id == Agent.id)
        .where(SubAgent.agent_id == agent_id)
        .order_by(SubAgent.created_at, SubAgent.id)
    )
    attached = await (await tx.session()).execute(
        select(Tool.id, Tool.name, Tool.tool_type, AgentTool.is_enabled)
        .join(AgentTool, AgentTool.tool_id == Tool.id)
        .where(AgentTool.agent_id == agent_id)
        .order_by(AgentTool.display_order, AgentTool.attached_at, AgentTool.id)
    )
    return filled(
        FullAgent,
        agent,
        tools=[AttachedTool(row[0], row[1], row[2], row[3]) for row in attached],
        knowledge_base=KnowledgeBase(),
        sub_agents=[SubAgentBrief(row[0], row[1], row[2]) for row in children],  # type: ignore[arg-type]
    )


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
    session = await tx.session()
    session.add(agent)
    await session.flush()
    await _keep_version(tx, agent, principal)
    created = AgentCreated(agent.id, agent.name, agent.status, agent.primary_model)
    await events.emit(tx, created, tenant_id=agent.tenant_id)
    if agent.status == "published":
        published = AgentPublished(agent.id, agent.name)
        await events.emit(tx, published, tenant_id=agent.tenant_id)
    return filled(AgentView, agent)


async def update(tx: Tx, principal: Principal, agent_id: str, data: UpdateAgent) -> AgentView:
    agent = await find(tx, agent_id, for_update=True)
    await change(tx, principal, agent, bodies.given(data))
    return filled(AgentView, agent)


async def change(tx: Tx, principal: Principal, agent: Agent, values: dict[str, Any]) -> None:
    """Write what differs, keep a version where behaviour does, and say what happened."""
    changed = [name for name, value in values.items() if getattr(agent, name) != value]
    if not changed:
        return
    for name in changed:
        setattr(agent, name, values[name])
    if "primary_model" in changed:
        agent.provider = provider_of(agent.primary_model)
    if any(name in BEHAVIOUR for name in changed):
        agent.version += 1
        await _keep_version(tx, agent, principal)
    await (await tx.session()).flush()
    updated = AgentUpdated(agent.id, agent.name, agent.status, agent.version, changed)
    await events.emit(tx, updated, tenant_id=agent.tenant_id)
    if "status" in changed and agent.status == "published":
        published = AgentPublished(agent.id, agent.name)
        await events.emit(tx, published, tenant_id=agent.tenant_id)


async def delete(tx: Tx, doorbell: Doorbell, agent_id: str) -> None:
    """With its conversations, keys, versions, attachments and the sub-agents made for it."""
    # A worker that finishes a job takes its work's row first and the agent's then, and so do we.
    _, early = await _cancel_jobs(tx, doorbell, await find(tx, agent_id))
    agent = await find(tx, agent_id, for_update=True)
    gone, late = await _cancel_jobs(tx, doorbell, agent)
    ids = [row["id"] for row in gone]
    await vault.forget_integration(tx, agent.tenant_id, "agent", ids)
    await tools.forget_agents(tx, agent.tenant_id, ids)
    session = await tx.session()
    losing = select(SubAgent.agent_id).where(SubAgent.child_id.in_(ids))
    others = select(Agent).where(Agent.id.in_(losing), Agent.id.not_in(ids))
    parents = list(await session.scalars(others))
    await session.delete(agent)
    await session.flush()
    await events.forget_said(tx, agent.tenant_id, ids, early + late)
    for row in gone:
        deleted = AgentDeleted(row["id"], row["name"])
        await events.emit(tx, deleted, tenant_id=agent.tenant_id)
    for parent in parents:
        await telling.tell(tx, parent, "sub_agents")


async def _cancel_jobs(tx: Tx, doorbell: Doorbell, agent: Agent) -> tuple[list[Row], list[str]]:
    """Gives the agents that go with it, and the jobs."""
    gone = await queries.with_descendants(tx, agent.tenant_id, agent.id)
    ids = [row["id"] for row in gone]
    return gone, await jobs.cancel_all(tx, doorbell, agent.tenant_id, ids)


# Versions


async def _keep_version(tx: Tx, agent: Agent, principal: Principal) -> None:
    kept = {name: getattr(agent, name) for name in BEHAVIOUR}
    (await tx.session()).add(
        AgentVersion(
            id=new_id("agv"),
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            version=agent.version,
            created_by=principal.user_id,
            **kept,
        )
    )


async def versions(tx: Tx, agent_id: str, page: Page) -> Paged[VersionView]:
    await find(tx, agent_id)
    wanted = select(AgentVersion).where(AgentVersion.agent_id == agent_id)
    rows, total = await paging.fetch(tx, wanted, page, [AgentVersion.version.desc()])
    return paging.paged([filled(VersionView, row) for row in rows], total, page)


async def restore(tx: Tx, principal: Principal, agent_id: str, version: str) -> AgentView:
    """The agent behaves as it did then; that is a new version itself."""
    agent = await find(tx, agent_id, for_update=True)
    kept = None
    if _VERSION.fullmatch(version):
        kept = await (await tx.session()).scalar(
            select(AgentVersion).where(
                AgentVersion.agent_id == agent_id, AgentVersion.version == int(version)
            )
        )
    if kept is None:
        raise VersionNotFound(f"This agent has no version {version[:20]}")
    await change(tx, principal, agent, {name: getattr(kept, name) for name in BEHAVIOUR})
    return filled(AgentView, agent)


# Log settings


async def log_settings(tx: Tx, agent_id: str) -> LogSettings:
    return filled(LogSettings, await find(tx, agent_id))


async def update_log_settings(
    tx: Tx, principal: Principal, agent_id: str, data: UpdateLogSettings
) -> LogSettings:
    agent = await find(tx, agent_id, for_update=True)
    await change(tx, principal, agent, bodies.given(data))
    return filled(LogSettings, agent)
