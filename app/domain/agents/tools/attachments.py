"""Attachments: the tools of an agent, their order, and the agent's overrides of their configs."""

from typing import Any

from app.context import RequestContext
from app.domain.agents.definition import api as agents
from app.domain.agents.vault.api import CredentialUse, IntegrationRef
from app.kit import validation
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.texts import is_deeper
from db.models import Agent, AgentTool, Tool
from db.session import Tx

from . import auth_configs, configs, queries, run_plan, service, stored_auth
from .auth_configs import AuthConfig, CredentialAuth
from .auth_validation import validate_auth
from .configs import Config
from .errors import AttachmentNotFound, ToolNotFound
from .schemas import Attachment, AttachTool, NewAttachment, PatchAttachment

_MAX_TOOLS = 100
_MAX_DEPTH = 32


async def list_all(tx: Tx, agent_id: str) -> list[Attachment]:
    attachments = await queries.list_attachments(tx, agent_id)
    if not attachments:
        await agents.require(tx, agent_id)
    return attachments


async def get(tx: Tx, agent_id: str, tool_id: str) -> Attachment:
    attachment = await queries.find_attachment(tx, agent_id, tool_id)
    if attachment is None:
        raise _not_found(tool_id)
    return attachment


async def attach(context: RequestContext, agent_id: str, data: AttachTool) -> NewAttachment:
    agent = await agents.find(context.tx, agent_id, for_update=True)
    tool = await service.find(context.tx, data.tool_id)
    if tool.tenant_id != agent.tenant_id:
        raise ToolNotFound(f"There is no tool {data.tool_id[:64]}")
    session = await context.tx.session()
    attached_ids = await queries.list_attached_ids(context.tx, agent_id)
    if data.tool_id in attached_ids:
        raise Conflict(f"{tool.name} is already attached")
    if len(attached_ids) >= _MAX_TOOLS:
        raise Conflict(f"An agent has at most {_MAX_TOOLS} tools; detach one first")
    attachment = AgentTool(
        id=new_id("atl"),
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        tool_id=tool.id,
        is_enabled=data.is_enabled,
    )
    attachment.display_order = (
        data.display_order
        if data.display_order is not None
        else await queries.next_display_order(context.tx, agent.tenant_id, agent.id)
    )
    await _set_override(context, attachment, tool, data.config_override)
    session.add(attachment)
    await session.flush()
    await session.refresh(attachment)
    await agents.emit_updated(context.tx, agent, ["tools"])
    return NewAttachment(
        agent.id,
        tool.id,
        attachment.is_enabled,
        attachment.display_order,
        attachment.config_override,
        attachment.attached_at,
    )


async def patch(
    context: RequestContext, agent_id: str, tool_id: str, data: PatchAttachment
) -> Attachment:
    agent, attachment, tool = await _find_attachment(context.tx, agent_id, tool_id)
    values = validation.set_fields(data)
    if "config_override" in values:
        await _set_override(context, attachment, tool, values.pop("config_override"))
    for name, value in values.items():
        setattr(attachment, name, value)
    await (await context.tx.session()).flush()
    await agents.emit_updated(context.tx, agent, ["tools"])
    return _build_view(attachment, tool)


async def detach(tx: Tx, agent_id: str, tool_id: str) -> None:
    agent, attachment, _ = await _find_attachment(tx, agent_id, tool_id)
    session = await tx.session()
    await session.delete(attachment)
    await session.flush()
    await agents.emit_updated(tx, agent, ["tools"])


async def _set_override(
    context: RequestContext, attachment: AgentTool, tool: Tool, value: dict[str, Any] | None
) -> None:
    """Replaces the override. Its `auth_config` is encrypted and stored apart from the rest, which
    the API shows.
    """
    current = run_plan.open_override(attachment, tool, context.keyring, context.guard)
    attachment.config_override = attachment.override_auth = None
    if value is None:
        return
    if is_deeper(value, _MAX_DEPTH):
        raise Invalid.field("config_override", f"is nested deeper than {_MAX_DEPTH} levels")
    override = dict(value)
    auth_config = override.pop("auth_config", None)
    override = configs.select_known_keys(tool.tool_type, override)
    merged = configs.merge(tool.config, override)
    sends_no_auth = tool.auth_type == "none" or (
        auth_config is None and _is_moved(context, tool, override)
    )
    await service.validate_config(
        context, tool.tool_type, merged, "config_override", allow_http=sends_no_auth
    )
    attachment.config_override = override
    if auth_config is not None:
        config = run_plan.apply_override(tool.tool_type, tool.config, override, context.guard)
        use = _build_use(context, attachment, tool, config, current)
        attachment.override_auth = await _seal_auth(
            context, attachment, tool, use, config, auth_config
        )


def _build_use(
    context: RequestContext,
    attachment: AgentTool,
    tool: Tool,
    config: Config,
    current: tuple[Config, AuthConfig] | None,
) -> CredentialUse:
    """`current` is the config and the auth that the attachment has now."""
    guard, current_id = context.guard, None
    if current is not None and isinstance(current[1], CredentialAuth):
        is_moved = configs.destination(current[0], guard) != configs.destination(config, guard)
        current_id = None if is_moved else current[1].credential_id
    agent, host = (
        IntegrationRef("agent", attachment.agent_id),
        configs.destination_host(config, guard),
    )
    return CredentialUse(tool.tenant_id, agent, host, current_id)


def _is_moved(context: RequestContext, tool: Tool, override: dict[str, Any]) -> bool:
    """True when the override has another destination than the tool, whose auth it then loses."""
    config = run_plan.apply_override(tool.tool_type, tool.config, override, context.guard)
    tool_config = stored_auth.parse_config(tool.tool_type, tool.config)
    return configs.destination(config, context.guard) != (
        configs.destination(tool_config, context.guard)
    )


async def _seal_auth(
    context: RequestContext,
    attachment: AgentTool,
    tool: Tool,
    use: CredentialUse,
    config: Config,
    auth_config: Any,
) -> bytes:
    name = "config_override.auth_config"
    if tool.auth_type == "none":
        raise Invalid.field(name, "the tool's auth_type is none")
    if not isinstance(auth_config, dict):
        raise Invalid.field(name, "must be an object")
    auth = await validate_auth(context, use, tool.auth_type, auth_config, name)
    if isinstance(auth, CredentialAuth):
        # The choice of where a credential is sent needs the permission to change credentials.
        context.principal.require("credentials:write")
    seal_context = run_plan.override_seal_context(attachment.tenant_id, attachment.id)
    destination = stored_auth.auth_destination(tool.tool_type, config, context.guard)
    return context.keyring.seal(auth_configs.encode(auth, destination), seal_context)


async def _find_attachment(tx: Tx, agent_id: str, tool_id: str) -> tuple[Agent, AgentTool, Tool]:
    agent = await agents.find(tx, agent_id)
    row = await queries.lock_attachment(tx, agent_id, tool_id)
    if row is None:
        raise _not_found(tool_id)
    return agent, row[0], row[1]


def _not_found(tool_id: str) -> AttachmentNotFound:
    return AttachmentNotFound(f"This agent has no tool {tool_id[:64]}")


def _build_view(attachment: AgentTool, tool: Tool) -> Attachment:
    return Attachment(
        tool.id,
        tool.name,
        tool.tool_type,  # type: ignore[arg-type]
        tool.category,  # type: ignore[arg-type]
        attachment.is_enabled,
        attachment.display_order,
        attachment.config_override,
        attachment.attached_at,
    )
