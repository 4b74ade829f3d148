"""The tools of an agent: attached, ordered, switched, and given settings of their own."""

from typing import Any

from app.domain.agents import service as agents
from app.domain.tools import auths, configs, plans, queries, registry
from app.domain.tools.auths import CredentialAuth
from app.domain.tools.errors import AttachmentNotFound, ToolNotFound
from app.domain.tools.schemas import Attachment, AttachTool, NewAttachment, PatchAttachment
from app.http.context import RequestContext
from app.kit import validation
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.texts import is_deeper
from db.models import Agent, AgentTool, Tool
from db.session import Tx

_MAX_TOOLS = 100
_MAX_DEPTH = 32


async def list_all(tx: Tx, agent_id: str) -> list[Attachment]:
    await agents.find(tx, agent_id)
    return [_view(link, tool) for link, tool in await queries.list_attachments(tx, agent_id)]


async def attach(context: RequestContext, agent_id: str, data: AttachTool) -> NewAttachment:
    agent = await agents.find(context.tx, agent_id, for_update=True)
    tool = await registry.find(context.tx, data.tool_id)
    if tool.tenant_id != agent.tenant_id:
        raise ToolNotFound(f"There is no tool {data.tool_id[:64]}")
    session = await context.tx.session()
    attached = {other.id for _, other in await queries.list_attachments(context.tx, agent_id)}
    if data.tool_id in attached:
        raise Conflict(f"{tool.name} is attached already")
    if len(attached) >= _MAX_TOOLS:
        raise Conflict(f"An agent has at most {_MAX_TOOLS} tools; detach one first")
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
        else await queries.next_place(context.tx, agent.tenant_id, agent.id)
    )
    await _set_override(context, link, tool, data.config_override)
    session.add(link)
    await session.flush()
    await session.refresh(link)
    await agents.emit_updated(context.tx, agent, ["tools"])
    return NewAttachment(
        agent.id,
        tool.id,
        link.is_enabled,
        link.display_order,
        link.config_override,
        link.attached_at,
    )


async def patch(
    context: RequestContext, agent_id: str, tool_id: str, data: PatchAttachment
) -> Attachment:
    agent, link, tool = await _existing(context.tx, agent_id, tool_id)
    values = validation.set_fields(data)
    if "config_override" in values:
        await _set_override(context, link, tool, values.pop("config_override"))
    for name, value in values.items():
        setattr(link, name, value)
    await (await context.tx.session()).flush()
    await agents.emit_updated(context.tx, agent, ["tools"])
    return _view(link, tool)


async def detach(tx: Tx, agent_id: str, tool_id: str) -> None:
    agent, link, _ = await _existing(tx, agent_id, tool_id)
    session = await tx.session()
    await session.delete(link)
    await session.flush()
    await agents.emit_updated(tx, agent, ["tools"])


async def _set_override(
    context: RequestContext, link: AgentTool, tool: Tool, given: dict[str, Any] | None
) -> None:
    """Replaces what was there. Its auth is sealed apart from the rest, which is shown."""
    link.config_override = link.override_auth = None
    if given is None:
        return
    if is_deeper(given, _MAX_DEPTH):
        raise Invalid.field("config_override", f"is nested deeper than {_MAX_DEPTH} levels")
    override = dict(given)
    auth_given = override.pop("auth_config", None)
    override = configs.kept(tool.tool_type, override)
    whole = configs.merged(tool.config, override)
    plain = tool.auth_type == "none"
    if auth_given is None and not plain:
        config = plans.overridden(tool.tool_type, tool.config, override, context.guard, plain=True)
        there = configs.destination(registry.as_config(tool.tool_type, tool.config), context.guard)
        plain = configs.destination(config, context.guard) != there
    await registry.validate_config(context, tool.tool_type, whole, "config_override", plain=plain)
    link.config_override = override
    if auth_given is not None:
        link.override_auth = await _sealed_auth(context, link, tool, override, auth_given)


async def _sealed_auth(
    context: RequestContext, link: AgentTool, tool: Tool, override: dict[str, Any], given: Any
) -> bytes:
    name = "config_override.auth_config"
    if tool.auth_type == "none":
        raise Invalid.field(name, "the tool's auth_type is none")
    if not isinstance(given, dict):
        raise Invalid.field(name, "must be an object")
    auth = await registry.validate_auth(context, tool.tenant_id, tool.auth_type, given, name)
    if isinstance(auth, CredentialAuth):
        # Where a credential is sent is a decision about the credential.
        context.principal.require("credentials:write")
    seal_context = plans.override_context(link.tenant_id, link.id)
    config = plans.overridden(tool.tool_type, tool.config, override, context.guard, plain=True)
    to = registry.destination(tool.tool_type, config, context.guard)
    return context.keyring.seal(auths.encode(auth, to), seal_context)


async def _existing(tx: Tx, agent_id: str, tool_id: str) -> tuple[Agent, AgentTool, Tool]:
    agent = await agents.find(tx, agent_id)
    found = await queries.lock_attachment(tx, agent_id, tool_id)
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
