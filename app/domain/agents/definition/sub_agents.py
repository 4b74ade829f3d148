"""Sub-agents that an agent delegates to: attached agents, and direct ones that it owns."""

from typing import Any

from app.kit import validation
from app.kit.errors import Conflict
from app.kit.ids import new_id
from app.security.principal import Principal
from app.services import Services
from db.models import Agent, SubAgent
from db.session import Tx

from . import queries, service
from .errors import AgentNotFound, SubAgentCycle, SubAgentNotFound
from .schemas import (
    AttachSubAgent,
    CreateAgent,
    CreateDirectSubAgent,
    DirectSubAgentView,
    PatchSubAgent,
    SubAgentView,
    UpdateDirectSubAgent,
)

_LINK_FIELDS = ("delegation_prompt", "is_enabled")


async def list_all(tx: Tx, agent_id: str) -> list[SubAgentView]:
    views = await queries.list_sub_agents(tx, agent_id)
    if not views:
        await service.require(tx, agent_id)
    return views


async def get(tx: Tx, agent_id: str, child_id: str) -> SubAgentView:
    view = await queries.find_sub_agent(tx, agent_id, child_id)
    if view is None:
        raise _not_found(child_id)
    return view


async def get_direct(tx: Tx, agent_id: str, child_id: str) -> DirectSubAgentView:
    view = await queries.find_direct_sub_agent(tx, agent_id, child_id)
    if view is None:
        raise _not_found(child_id)
    return view


async def attach(tx: Tx, agent_id: str, data: AttachSubAgent) -> SubAgentView:
    parent = await service.find(tx, agent_id)
    child = await service.find(tx, data.agent_id)
    if child.tenant_id != parent.tenant_id:
        raise AgentNotFound(f"There is no agent {data.agent_id[:64]}")
    if child.parent_id is not None:
        raise Conflict("This agent is a direct sub-agent of another agent; it cannot be attached")
    if child.id == parent.id:
        raise SubAgentCycle("An agent cannot delegate tasks to itself")
    await queries.lock_link_changes(tx, parent.tenant_id)
    if await queries.can_reach(tx, parent.tenant_id, child.id, parent.id):
        raise SubAgentCycle(f"{child.name} already delegates to {parent.name}, directly or not")
    if await queries.lock_link(tx, agent_id, child.id) is not None:
        raise Conflict(f"{child.name} is already attached")
    link = await _add_link(tx, parent, child, "template", data)
    await service.emit_updated(tx, parent, ["sub_agents"])
    return _build_view(link, child)


async def create(
    tx: Tx, principal: Principal, agent_id: str, data: CreateDirectSubAgent
) -> DirectSubAgentView:
    parent = await service.find(tx, agent_id)
    view = await service.create(
        tx,
        principal,
        CreateAgent(
            name=data.name,
            primary_model=data.primary_model,
            system_prompt=data.system_prompt,
            description=data.description,
            temperature=data.temperature,
            max_tokens=data.max_tokens,
            status="published",
        ),
        parent=parent,
    )
    child = await service.find(tx, view.id)
    link = await _add_link(tx, parent, child, "direct", data)
    await service.emit_updated(tx, parent, ["sub_agents"])
    return _build_direct_view(link, child)


async def _add_link(
    tx: Tx,
    parent: Agent,
    child: Agent,
    relationship: str,
    data: AttachSubAgent | CreateDirectSubAgent,
) -> SubAgent:
    link = SubAgent(
        id=new_id("sag"),
        tenant_id=parent.tenant_id,
        agent_id=parent.id,
        child_id=child.id,
        relationship_type=relationship,
        is_enabled=data.is_enabled,
        delegation_prompt=data.delegation_prompt,
    )
    session = await tx.session()
    session.add(link)
    await session.flush()
    return link


async def update_direct(
    tx: Tx, principal: Principal, agent_id: str, child_id: str, data: UpdateDirectSubAgent
) -> DirectSubAgentView:
    parent, link = await _lock_link(tx, agent_id, child_id)
    if link.relationship_type != "direct":
        raise Conflict("This agent is attached, not direct; change it with PUT /api/v1/agents/:id")
    values = validation.set_fields(data)
    link_values = {name: values.pop(name) for name in _LINK_FIELDS if name in values}
    if link_values:
        _set_fields(link, link_values)
        await service.emit_updated(tx, parent, ["sub_agents"])
    child = await service.find(tx, child_id, for_update=True)
    await service.change(tx, principal, child, values)
    return _build_direct_view(link, child)


async def patch(tx: Tx, agent_id: str, child_id: str, data: PatchSubAgent) -> SubAgentView:
    parent, link = await _lock_link(tx, agent_id, child_id)
    _set_fields(link, validation.set_fields(data))
    await service.emit_updated(tx, parent, ["sub_agents"])
    return _build_view(link, await service.find(tx, child_id))


async def detach(
    tx: Tx, services: Services, principal: Principal, agent_id: str, child_id: str
) -> None:
    """Removes the link to an attached agent; deletes a direct sub-agent."""
    parent, link = await _lock_link(tx, agent_id, child_id)
    if link.relationship_type == "direct":
        principal.require("agents:delete")
        # Also emits the update of the parents.
        await service.delete(tx, services, child_id)
        return
    session = await tx.session()
    await session.delete(link)
    await session.flush()
    await service.emit_updated(tx, parent, ["sub_agents"])


async def _lock_link(tx: Tx, agent_id: str, child_id: str) -> tuple[Agent, SubAgent]:
    parent = await service.find(tx, agent_id)
    link = await queries.lock_link(tx, agent_id, child_id)
    if link is None:
        raise _not_found(child_id)
    return parent, link


def _not_found(child_id: str) -> SubAgentNotFound:
    return SubAgentNotFound(f"This agent has no sub-agent {child_id[:64]}")


def _set_fields(link: SubAgent, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(link, name, value)


def _build_view(link: SubAgent, child: Agent) -> SubAgentView:
    return SubAgentView(
        child.id,
        child.name,
        link.relationship_type,  # type: ignore[arg-type]
        link.is_enabled,
        link.delegation_prompt,
    )


def _build_direct_view(link: SubAgent, child: Agent) -> DirectSubAgentView:
    return DirectSubAgentView(
        child.id,
        child.name,
        link.relationship_type,  # type: ignore[arg-type]
        link.is_enabled,
        link.delegation_prompt,
        child.description,
        child.primary_model,
        child.system_prompt,
        child.temperature,
        child.max_tokens,
        child.created_at,
        child.updated_at,
    )
