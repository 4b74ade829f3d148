"""The tools of an agent: attached, ordered, switched, and given settings of their own."""

from typing import Any

from sqlalchemy import select

from app.domain.agents import service as agents
from app.domain.agents import telling
from app.domain.tools import auths, configs, plans, queries, service
from app.domain.tools.auths import CredentialAuth
from app.domain.tools.errors import AttachmentNotFound, ToolNotFound
from app.domain.tools.schemas import Attachment, AttachTool, NewAttachment, PatchAttachment
from app.domain.tools.service import Registry
from app.http import bodies
from app.http.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.texts import is_deeper
from db.models import Agent, AgentTool, Tool
from db.session import Tx

_MOST = 100
_DEEPEST = 32


async def every(tx: Tx, agent_id: str) -> list[Attachment]:
    await agents.find(tx, agent_id)
    found = await (await tx.session()).execute(
        select(AgentTool, Tool)
        .join(Tool, Tool.id == AgentTool.tool_id)
        .where(AgentTool.agent_id == agent_id)
        .order_by(AgentTool.display_order, AgentTool.attached_at, AgentTool.id)
    )
    return [_view(link, tool) for link, tool in found]


async def attach(at: Registry, agent_id: str, data: AttachTool) -> NewAttachment:
    agent = await agents.find(at.tx, agent_id, for_update=True)
    tool = await service.find(at.tx, data.tool_id)
    if tool.tenant_id != agent.tenant_id:
        raise ToolNotFound(f"There is no tool {data.tool_id[:64]}")
    session = await at.tx.session()
    links = list(
        await session.scalars(select(AgentTool.tool_id).where(AgentTool.agent_id == agent_id))
    )
    if data.tool_id in links:
        raise Conflict(f"{tool.name} is attached already")
    if len(links) >= _MOST:
        raise Conflict(f"An agent has at most {_MOST} tools; detach one first")
    link = AgentTool(
        id=new_id("atl"),
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        tool_id=tool.id,
        is_enabled=data.is_enabled,
    )
    link.display_order = (
        data.display_order
        if data.display_order is not None
        else await queries.next_place(at.tx, agent.tenant_id, agent.id)
    )
    await _set_override(at, link, tool, data.config_override)
    session.add(link)
    await session.flush()
    await session.refresh(link)
    await telling.tell(at.tx, agent, "tools")
    return NewAttachment(
        agent.id,
        tool.id,
        link.is_enabled,
        link.display_order,
        link.config_override,
        link.attached_at,
    )


async def patch(at: Registry, agent_id: str, tool_id: str, data: PatchAttachment) -> Attachment:
    agent, link, tool = await _existing(at.tx, agent_id, tool_id)
    values = bodies.given(data)
    if "config_override" in values:
        await _set_override(at, link, tool, values.pop("config_override"))
    for name, value in values.items():
        setattr(link, name, value)
    await (await at.tx.session()).flush()
    await telling.tell(at.tx, agent, "tools")
    return _view(link, tool)


async def detach(tx: Tx, agent_id: str, tool_id: str) -> None:
    agent, link, _ = await _existing(tx, agent_id, tool_id)
    session = await tx.session()
    await session.delete(link)
    await session.flush()
    await telling.tell(tx, agent, "tools")


async def _set_override(
    at: Registry, link: AgentTool, tool: Tool, given: dict[str, Any] | None
) -> None:
    """Replaces what was there. Its auth is sealed apart from the rest, which is shown."""
    link.config_override = link.override_auth = None
    if given is None:
        return
    if is_deeper(given, _DEEPEST):
        raise Invalid.field("config_override", f"is nested deeper than {_DEEPEST} levels")
    override = dict(given)
    auth_given = override.pop("auth_config", None)
    override = configs.kept(tool.tool_type, override)
    whole = configs.merged(tool.config, override)
    plain = tool.auth_type == "none"
    if auth_given is None and not plain:
        config = plans.overridden(tool.tool_type, tool.config, override, at.guard, plain=True)
        there = configs.destination(service.as_config(tool.tool_type, tool.config), at.guard)
        plain = configs.destination(config, at.guard) != there
    await service.checked_config(at, tool.tool_type, whole, "config_override", plain=plain)
    link.config_override = override
    if auth_given is not None:
        link.override_auth = await _sealed_auth(at, link, tool, override, auth_given)


async def _sealed_auth(
    at: Registry, link: AgentTool, tool: Tool, override: dict[str, Any], given: Any
) -> bytes:
    name = "config_override.auth_config"
    if tool.auth_type == "none":
        raise Invalid.field(name, "the tool's auth_type is none")
    if not isinstance(given, dict):
        raise Invalid.field(name, "must be an object")
    auth = await service.checked_auth(at, tool.tenant_id, tool.auth_type, given, name)
    if isinstance(auth, CredentialAuth):
        # Where a credential is sent is a decision about the credential.
        at.principal.require("credentials:write")
    place = plans.override_place(link.tenant_id, link.id)
    config = plans.overridden(tool.tool_type, tool.config, override, at.guard, plain=True)
    to = service.destination(tool.tool_type, config, at.guard)
    return at.keyring.seal(auths.packed(auth, to), place)


async def _existing(tx: Tx, agent_id: str, tool_id: str) -> tuple[Agent, AgentTool, Tool]:
    agent = await agents.find(tx, agent_id)
    found = (
        await (await tx.session()).execute(
            select(AgentTool, Tool)
            .join(Tool, Tool.id == AgentTool.tool_id)
            .where(AgentTool.agent_id == agent_id, AgentTool.tool_id == tool_id)
            .with_for_update(of=AgentTool)
        )
    ).first()
    if found is None:
        raise AttachmentNotFound(f"This agent has no tool {tool_id[:64]}")
    return agent, found[0], found[1]


def _view(link: AgentTool, tool: Tool) -> Attachment:
    return Attachment(
        tool.id,
        tool.name,
        tool.tool_type,  # type: ignore[arg-type]
        tool.category,  # type: ignore[arg-type]
        link.is_enabled,
        link.display_order,
        link.config_override,
        link.attached_at,
    )
