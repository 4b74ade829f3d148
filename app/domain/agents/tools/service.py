"""Creates, reads, changes and deletes tools, with the config and the encrypted auth of each."""

import asyncio
import re
from itertools import count
from typing import Any, Final

import msgspec

from app.context import RequestContext
from app.domain.agents.definition import api as agents
from app.domain.agents.vault import api as vault
from app.domain.agents.vault.api import CredentialUse, IntegrationRef
from app.domain.platform.events import api as events
from app.jobs import work
from app.jobs.work import WorkKind
from app.kit import paging, validation
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.texts import as_json, is_deeper
from app.kit.views import build_view
from app.net.egress import BlockedAddress
from app.sandbox import packages
from db.fast import tenant_of
from db.models import Tool
from db.session import Tx

from . import configs, json_schema, queries, stored_auth
from .auth_validation import validate_auth
from .categories import CATEGORIES
from .configs import TOOL_TYPES, FunctionConfig, ScriptConfig
from .errors import ToolNotFound
from .events import ToolCreated, ToolDeleted, ToolUpdated
from .schemas import (
    CategoryView,
    CreateTool,
    FullTool,
    ToolSummary,
    ToolView,
    UpdateTool,
    UsageStats,
)

_NOT_SLUG = re.compile(r"[^a-z0-9]+")
# Tells the caller of a run that its tool was deleted.
REPORT_DELETED: Final = WorkKind("tools.report_deleted")
_MAX_SLUG_CHARS = 80
_MAX_CONFIG_CHARS = 600_000
_MAX_DEPTH = 32
_STATS_HOURS = 30 * 24


async def list_page(
    tx: Tx,
    page: Page,
    *,
    category: str | None,
    tool_type: str | None,
    is_enabled: bool | None,
    search: str | None,
    sort: str | None,
) -> Paged[ToolSummary]:
    filters = {"category": category, "tool_type": tool_type, "is_enabled": is_enabled}
    summaries, total = await queries.list_tools(tx, page, filters, search=search, sort=sort)
    return paging.paged(summaries, total, page)


async def list_categories(tx: Tx) -> list[CategoryView]:
    counts = await queries.count_by_category(tx, tenant_of(tx))
    return [
        CategoryView(
            category.slug,
            category.name,
            category.description,
            category.icon,
            counts.get(category.slug, 0),
        )
        for category in CATEGORIES
    ]


async def find(tx: Tx, tool_id: str, *, for_update: bool = False) -> Tool:
    tool = await (await tx.session()).get(Tool, tool_id, with_for_update=for_update)
    if tool is None:
        raise _not_found(tool_id)
    return tool


async def require(tx: Tx, tool_id: str) -> None:
    """Raises ToolNotFound unless the tool exists."""
    if not await queries.exists(tx, tool_id):
        raise _not_found(tool_id)


def _not_found(tool_id: str) -> ToolNotFound:
    return ToolNotFound(f"There is no tool {tool_id[:64]}")


async def show(context: RequestContext, tool_id: str) -> FullTool:
    """Hides the config, which may have code and addresses, from those who may not change it."""
    tool = await get(context, tool_id)
    if not context.principal.may("tools:write"):
        tool.config, tool.credential_id = {}, None
    return tool


async def get(context: RequestContext, tool_id: str) -> FullTool:
    row = await queries.find_full(context.tx, tool_id, _STATS_HOURS)
    if row is None:
        raise _not_found(tool_id)
    stats = UsageStats(
        row["total"],
        row["successful"],
        row["total"] - row["successful"],
        percentage(row["successful"], row["total"]),
        round(row["average"], 1),
    )
    source, credential_id = stored_auth.read_source(
        context.keyring, row["tenant_id"], tool_id, row["auth_config"]
    )
    return queries.build_full(
        row, usage_stats=stats, auth_source=source, credential_id=credential_id
    )


def percentage(part: int, whole: int) -> float:
    """Returns `part` of `whole` in percent, with two decimal places."""
    return round(100 * part / whole, 2) if whole else 0.0


async def create(context: RequestContext, data: CreateTool) -> ToolView:
    tool_id, tenant_id = new_id("tool"), context.principal.home
    _check_auth_type(data.tool_type, data.auth_type)
    config = await _validate_config(
        context, data.tool_type, data.config, allow_http=data.auth_type == "none"
    )
    auth = None
    if data.auth_config and data.auth_type != "none":
        use = _build_use(context, tenant_id, tool_id, (data.tool_type, config))
        auth = await validate_auth(context, use, data.auth_type, data.auth_config, "auth_config")
    for name in ("input_schema", "output_schema"):
        _check_schema(name, getattr(data, name))
    tool = Tool(
        id=tool_id,
        tenant_id=tenant_id,
        name=data.name,
        slug=await _choose_slug(context.tx, tenant_id, data),
        description=data.description,
        category=data.category,
        tool_type=data.tool_type,
        config=config,
        auth_type=data.auth_type,
        auth_config=stored_auth.seal_auth(
            context, tenant_id, tool_id, auth, (data.tool_type, config)
        ),
        input_schema=data.input_schema,
        output_schema=data.output_schema,
        is_enabled=data.is_enabled,
    )
    session = await context.tx.session()
    session.add(tool)
    await session.flush()
    created = ToolCreated(tool.id, tool.name, tool.tool_type)
    await events.emit(context.tx, created, tenant_id=tenant_id)
    return build_view(ToolView, tool)


async def update(context: RequestContext, tool_id: str, data: UpdateTool) -> FullTool:
    tool = await find(context.tx, tool_id, for_update=True)
    values = validation.set_fields(data)
    for name in ("input_schema", "output_schema"):
        _check_schema(name, values.get(name))
    if values.get("slug", tool.slug) != tool.slug:
        await _check_slug(context.tx, tool.tenant_id, values["slug"])
    auth_config = values.pop("auth_config", msgspec.UNSET)
    values |= await _change_config(context, tool, values)
    values |= await _change_auth(context, tool, values, auth_config)
    await _drop_stale_override_auth(context, tool, values)
    await events.save_changes(
        context.tx,
        tool,
        values,
        lambda names: ToolUpdated(tool.id, tool.name, tool.tool_type, names),
    )
    return await get(context, tool.id)


async def _change_config(
    context: RequestContext, tool: Tool, values: dict[str, Any]
) -> dict[str, Any]:
    """Merges the config by key. A new tool_type needs a whole new config."""
    tool_type = values.get("tool_type", tool.tool_type)
    auth_type = values.get("auth_type", tool.auth_type)
    _check_auth_type(tool_type, auth_type)
    changes = values.get("config")
    if tool_type != tool.tool_type:
        if changes is None:
            raise Invalid.field("config", f"is needed to make this a tool of type {tool_type}")
        config = configs.merge({}, changes)
    else:
        config = configs.merge(tool.config, changes or {})
    stored = await _validate_config(context, tool_type, config, allow_http=auth_type == "none")
    return {"config": stored}


async def _change_auth(
    context: RequestContext, tool: Tool, values: dict[str, Any], auth_config: Any
) -> dict[str, Any]:
    """Returns the new `auth_config`, or nothing when it does not change. The stored one is not kept
    for another destination or another auth_type.
    """
    auth_type = values.get("auth_type", tool.auth_type)
    type_and_config = (values.get("tool_type", tool.tool_type), values["config"])
    is_moved = stored_auth.stored_destination(context, *type_and_config) != (
        stored_auth.stored_destination(context, tool.tool_type, tool.config)
    )
    if is_moved and await vault.has_rules(context.tx, tool.tenant_id, "tool", tool.id):
        # The choice of where a credential is sent needs the permission to change credentials.
        context.principal.require("credentials:write")
    if auth_config is not msgspec.UNSET:
        if not auth_config or auth_type == "none":
            return {"auth_config": None}
        use = _build_use(context, tool.tenant_id, tool.id, type_and_config)
        if not is_moved:
            use = msgspec.structs.replace(
                use, current_id=stored_auth.find_credential_id(context, tool)
            )
        auth = await validate_auth(context, use, auth_type, auth_config, "auth_config")
        sealed = stored_auth.seal_auth(context, tool.tenant_id, tool.id, auth, type_and_config)
        return {"auth_config": sealed}
    if auth_type != tool.auth_type:
        return {"auth_config": None}
    if is_moved and tool.auth_config is not None:
        raise Invalid.field(
            "auth_config", "must be entered again, because the tool has another host now"
        )
    return {}


async def _drop_stale_override_auth(
    context: RequestContext, tool: Tool, values: dict[str, Any]
) -> None:
    """Removes the auth of agents' overrides that is for another destination or auth_type."""
    new_type = values.get("tool_type", tool.tool_type)
    is_same_auth_type = values.get("auth_type", tool.auth_type) == tool.auth_type
    for attachment in await queries.list_auth_overrides(context.tx, tool.id):
        override = attachment.config_override or {}
        before = _override_destination(context, tool.tool_type, tool.config, override)
        after = _override_destination(context, new_type, values["config"], override)
        if after is None or after != before or not is_same_auth_type:
            attachment.override_auth = None


def _override_destination(
    context: RequestContext, tool_type: str, config: dict[str, Any], override: dict[str, Any]
) -> tuple[Any, ...] | None:
    """Returns None when the override does not fit the config."""
    merged = configs.select_known_keys(tool_type, configs.merge(config, override))
    try:
        return stored_auth.stored_destination(context, tool_type, merged)
    except (msgspec.ValidationError, BlockedAddress):
        return None


async def delete(tx: Tx, tool_id: str) -> None:
    """Deletes a tool with its executions and its access rules, and detaches it from agents."""
    tool = await find(tx, tool_id, for_update=True)
    # By work of its own, since an area may lock its rows before the tool.
    for call_id in await queries.list_open_calls(tx, tool.tenant_id, tool.id):
        await work.accept(tx, REPORT_DELETED, tenant_id=tool.tenant_id, ref_id=call_id)
    await vault.delete_rules(tx, tool.tenant_id, "tool", [tool.id])
    tool_agents = await queries.list_agents_with_tool(tx, tool.id)
    session = await tx.session()
    await session.delete(tool)
    await session.flush()
    for agent in tool_agents:
        await agents.emit_updated(tx, agent, ["tools"])
    deleted = ToolDeleted(tool.id, tool.name, tool.tool_type)
    await events.emit(tx, deleted, tenant_id=tool.tenant_id)


# Validation


def _check_auth_type(tool_type: str, auth_type: str) -> None:
    if auth_type != "none" and not TOOL_TYPES[tool_type].takes_auth:
        raise Invalid.field("auth_type", f"must be none for a tool of type {tool_type}")


async def _validate_config(
    context: RequestContext, tool_type: str, value: dict[str, Any], *, allow_http: bool
) -> dict[str, Any]:
    return await validate_config(context, tool_type, value, "config", allow_http=allow_http)


async def validate_config(
    context: RequestContext, tool_type: str, value: dict[str, Any], name: str, *, allow_http: bool
) -> dict[str, Any]:
    """Returns the config as it is stored. Raises Invalid for the field `name`."""
    if is_deeper(value, _MAX_DEPTH):
        raise Invalid.field(name, f"is nested deeper than {_MAX_DEPTH} levels")
    stored = configs.select_known_keys(tool_type, value)
    config = configs.validate(tool_type, stored, context.guard, name, allow_http=allow_http)
    if len(as_json(stored)) > _MAX_CONFIG_CHARS:
        raise Invalid.field(name, f"must have at most {_MAX_CONFIG_CHARS} characters")
    if isinstance(config, FunctionConfig | ScriptConfig) and config.packages:
        if config.runtime != "python":
            raise Invalid.field(f"{name}.packages", f"there are none for {config.runtime}")
        home = context.settings.sandbox_home
        missing = await asyncio.to_thread(packages.missing, home, config.packages)
        if missing:
            message = f"not installed here: {', '.join(missing)}; see `parley tools packages`"
            raise Invalid.field(f"{name}.packages", message)
    return stored


def _check_schema(name: str, schema: dict[str, Any] | None) -> None:
    if schema is None:
        return
    json_schema.validate_schema(name, schema)
    types = schema.get("type", "object")
    if name == "input_schema" and "object" not in (types if isinstance(types, list) else [types]):
        raise Invalid.field(f"{name}.type", "must be object, because every input is one")


async def _choose_slug(tx: Tx, tenant_id: str, data: CreateTool) -> str:
    if data.slug is not None:
        await _check_slug(tx, tenant_id, data.slug)
        return data.slug
    base = _NOT_SLUG.sub("-", data.name.lower()).strip("-")[:_MAX_SLUG_CHARS].strip("-") or "tool"
    used_slugs = await queries.list_slugs_like(tx, tenant_id, base)
    if base not in used_slugs:
        return base
    return next(slug for number in count(2) if (slug := f"{base}-{number}") not in used_slugs)


async def _check_slug(tx: Tx, tenant_id: str, slug: str) -> None:
    if slug in await queries.list_slugs_like(tx, tenant_id, slug):
        raise Conflict(f"A tool with the slug {slug} already exists")


def _build_use(
    context: RequestContext,
    tenant_id: str,
    tool_id: str,
    type_and_config: tuple[str, dict[str, Any]],
) -> CredentialUse:
    host = configs.destination_host(stored_auth.parse_config(*type_and_config), context.guard)
    return CredentialUse(tenant_id, IntegrationRef("tool", tool_id), host)
