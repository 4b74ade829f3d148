"""The registry of tools: their fields, their config by type, and their sealed auth."""

import asyncio
import re
from itertools import count
from typing import Any

import msgspec

from app.domain.agents import service as agents
from app.domain.events import service as events
from app.domain.tools import auths, configs, json_schema, queries
from app.domain.tools.auths import AUTHS, AuthConfig, CredentialAuth
from app.domain.tools.categories import CATEGORIES
from app.domain.tools.configs import TOOL_TYPES, Config, FunctionConfig, ScriptConfig
from app.domain.tools.errors import ToolNotFound
from app.domain.tools.events import ToolCreated, ToolDeleted, ToolUpdated
from app.domain.tools.schemas import (
    CategoryView,
    CreateTool,
    FullTool,
    ToolSummary,
    ToolView,
    UpdateTool,
    UsageStats,
)
from app.domain.vault import service as vault
from app.http.context import RequestContext
from app.http.responses import build_view
from app.kit import paging, validation
from app.kit.crypto import SealContext
from app.kit.egress import BlockedAddress, Guard
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.sandbox import packages
from app.kit.texts import as_json, is_deeper
from db.fast import tenant_of
from db.models import Tool
from db.session import Tx

_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 80
_CONFIG_CHARS = 600_000
_DEEPEST = 32
_STATS_HOURS = 30 * 24


async def list_page(
    tx: Tx,
    page: Page,
    *,
    category: str | None,
    tool_type: str | None,
    search: str | None,
    sort: str | None,
) -> Paged[ToolSummary]:
    rows, total = await queries.list_tools(
        tx, page, category=category, tool_type=tool_type, search=search, sort=sort
    )
    return paging.paged([build_view(ToolSummary, row) for row in rows], total, page)


async def categories(tx: Tx) -> list[CategoryView]:
    counts = await queries.categories(tx, tenant_of(tx))
    return [
        CategoryView(one.slug, one.name, one.description, one.icon, counts.get(one.slug, 0))
        for one in CATEGORIES
    ]


async def find(tx: Tx, tool_id: str, *, for_update: bool = False) -> Tool:
    tool = await (await tx.session()).get(Tool, tool_id, with_for_update=for_update)
    if tool is None:
        raise ToolNotFound(f"There is no tool {tool_id[:64]}")
    return tool


async def get(tx: Tx, tool_id: str) -> FullTool:
    return await _full(tx, await find(tx, tool_id))


async def _full(tx: Tx, tool: Tool) -> FullTool:
    row = await queries.totals(tx, tool.tenant_id, tool.id, _STATS_HOURS)
    used = UsageStats(
        row["total"],
        row["successful"],
        row["total"] - row["successful"],
        share(row["successful"], row["total"]),
        round(row["average"], 1),
    )
    return build_view(FullTool, tool, usage_stats=used)


def share(part: int, whole: int) -> float:
    """Percent, two places."""
    return round(100 * part / whole, 2) if whole else 0.0


async def create(context: RequestContext, data: CreateTool) -> ToolView:
    tool_id, tenant_id = new_id("tool"), context.principal.home
    _check_auth_type(data.tool_type, data.auth_type)
    config = await _validate_config(
        context, data.tool_type, data.config, plain=data.auth_type == "none"
    )
    auth = None
    if data.auth_config and data.auth_type != "none":
        auth = await validate_auth(
            context, tenant_id, data.auth_type, data.auth_config, "auth_config"
        )
    for name in ("input_schema", "output_schema"):
        _check_schema(name, getattr(data, name))
    tool = Tool(
        id=tool_id,
        tenant_id=tenant_id,
        name=data.name,
        slug=await _slug(context.tx, tenant_id, data),
        description=data.description,
        category=data.category,
        tool_type=data.tool_type,
        config=config,
        auth_type=data.auth_type,
        auth_config=_sealed(context, tenant_id, tool_id, auth, (data.tool_type, config)),
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
    given_auth = values.pop("auth_config", msgspec.UNSET)
    values |= await _new_config(context, tool, values)
    values |= await _new_auth(context, tool, values, given_auth)
    await _keep_overrides_home(context, tool, values)
    await events.save_changes(
        context.tx,
        tool,
        values,
        lambda names: ToolUpdated(tool.id, tool.name, tool.tool_type, names),
    )
    return await _full(context.tx, tool)


async def _new_config(
    context: RequestContext, tool: Tool, values: dict[str, Any]
) -> dict[str, Any]:
    """Merged by key, except where the tool becomes one of another type."""
    tool_type = values.get("tool_type", tool.tool_type)
    auth_type = values.get("auth_type", tool.auth_type)
    _check_auth_type(tool_type, auth_type)
    given = values.get("config")
    if tool_type != tool.tool_type:
        if given is None:
            raise Invalid.field("config", f"is needed to make this a tool of type {tool_type}")
        whole = configs.merged({}, given)
    else:
        whole = configs.merged(tool.config, given or {})
    return {"config": await _validate_config(context, tool_type, whole, plain=auth_type == "none")}


async def _new_auth(
    context: RequestContext, tool: Tool, values: dict[str, Any], given: Any
) -> dict[str, Any]:
    """What was given; and nothing is kept for somewhere else, nor for another kind of auth."""
    auth_type = values.get("auth_type", tool.auth_type)
    moved = _destination(context, values.get("tool_type", tool.tool_type), values["config"]) != (
        _destination(context, tool.tool_type, tool.config)
    )
    if moved and await queries.has_rules(context.tx, tool.tenant_id, tool.id):
        # Where a credential is sent is a decision about the credential.
        context.principal.require("credentials:write")
    if given is not msgspec.UNSET:
        if not given or auth_type == "none":
            return {"auth_config": None}
        auth = await validate_auth(context, tool.tenant_id, auth_type, given, "auth_config")
        leads = (values.get("tool_type", tool.tool_type), values["config"])
        return {"auth_config": _sealed(context, tool.tenant_id, tool.id, auth, leads)}
    if auth_type != tool.auth_type:
        return {"auth_config": None}
    if moved and tool.auth_config is not None:
        raise Invalid.field("auth_config", "is needed again: the tool leads to another host now")
    return {}


async def _keep_overrides_home(context: RequestContext, tool: Tool, values: dict[str, Any]) -> None:
    """An agent's own auth for this tool is for where it led, and of the kind that it was."""
    new_type = values.get("tool_type", tool.tool_type)
    same_kind = values.get("auth_type", tool.auth_type) == tool.auth_type
    for link in await queries.list_auth_overrides(context.tx, tool.id):
        override = link.config_override or {}
        before = _overridden_destination(context, tool.tool_type, tool.config, override)
        after = _overridden_destination(context, new_type, values["config"], override)
        if after is None or after != before or not same_kind:
            link.override_auth = None


def _overridden_destination(
    context: RequestContext, tool_type: str, config: dict[str, Any], override: dict[str, Any]
) -> tuple[Any, ...] | None:
    """None where the two do not fit."""
    whole = configs.kept(tool_type, configs.merged(config, override))
    try:
        return _destination(context, tool_type, whole)
    except (msgspec.ValidationError, BlockedAddress):
        return None


def _destination(
    context: RequestContext, tool_type: str, config: dict[str, Any]
) -> tuple[Any, ...]:
    return destination(tool_type, as_config(tool_type, config), context.guard)


def destination(tool_type: str, config: Config, guard: Guard) -> tuple[Any, ...]:
    return (tool_type, *configs.destination(config, guard))


def as_config(tool_type: str, stored: dict[str, Any]) -> Config:
    found: Config = msgspec.convert(stored, TOOL_TYPES[tool_type].config)
    return found


async def delete(tx: Tx, tool_id: str) -> None:
    """Takes its runs along, and leaves every agent that has it."""
    tool = await find(tx, tool_id, for_update=True)
    await vault.delete_rules(tx, tool.tenant_id, "tool", [tool.id])
    users = await queries.list_agents_with(tx, tool.id)
    session = await tx.session()
    await session.delete(tool)
    await session.flush()
    for agent in users:
        await agents.emit_updated(tx, agent, ["tools"])
    deleted = ToolDeleted(tool.id, tool.name, tool.tool_type)
    await events.emit(tx, deleted, tenant_id=tool.tenant_id)


# Judging what is brought


def _check_auth_type(tool_type: str, auth_type: str) -> None:
    if auth_type != "none" and not TOOL_TYPES[tool_type].takes_auth:
        raise Invalid.field("auth_type", f"must be none for a tool of type {tool_type}")


async def _validate_config(
    context: RequestContext, tool_type: str, given: dict[str, Any], *, plain: bool
) -> dict[str, Any]:
    return await validate_config(context, tool_type, given, "config", plain=plain)


async def validate_config(
    context: RequestContext, tool_type: str, given: dict[str, Any], name: str, *, plain: bool
) -> dict[str, Any]:
    """What of a config is stored, once all of it is right."""
    if is_deeper(given, _DEEPEST):
        raise Invalid.field(name, f"is nested deeper than {_DEEPEST} levels")
    kept = configs.kept(tool_type, given)
    config = configs.validate(tool_type, kept, context.guard, name, plain=plain)
    if len(as_json(kept)) > _CONFIG_CHARS:
        raise Invalid.field(name, f"must have at most {_CONFIG_CHARS} characters")
    if isinstance(config, FunctionConfig | ScriptConfig) and config.packages:
        if config.runtime != "python":
            raise Invalid.field(f"{name}.packages", f"there are none for {config.runtime}")
        home = context.settings.sandbox_home
        missing = await asyncio.to_thread(packages.missing, home, config.packages)
        if missing:
            said = f"not installed here: {', '.join(missing)}; see `parley tools packages`"
            raise Invalid.field(f"{name}.packages", said)
    return kept


async def validate_auth(
    context: RequestContext, tenant_id: str, auth_type: str, given: dict[str, Any], name: str
) -> AuthConfig:
    auth = auths.validate(auth_type, given, context.guard, name)
    if isinstance(auth, CredentialAuth):
        found = await vault.credential_type(context.tx, tenant_id, auth.credential_id)
        if found is None:
            raise Invalid.field(f"{name}.credential_id", "there is no such credential")
        if found not in AUTHS[auth_type].credentials:
            said = f"is of type {found}, which does not fit the auth_type {auth_type}"
            raise Invalid.field(f"{name}.credential_id", said)
    return auth


def _check_schema(name: str, schema: dict[str, Any] | None) -> None:
    if schema is None:
        return
    json_schema.check(name, schema)
    kinds = schema.get("type", "object")
    if name == "input_schema" and "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise Invalid.field(f"{name}.type", "must be object, as every input is")


async def _slug(tx: Tx, tenant_id: str, data: CreateTool) -> str:
    if data.slug is not None:
        await _check_slug(tx, tenant_id, data.slug)
        return data.slug
    plain = _NOT_SLUG.sub("-", data.name.lower()).strip("-")[:_SLUG_CHARS].strip("-") or "tool"
    taken = await queries.slugs_like(tx, tenant_id, plain)
    if plain not in taken:
        return plain
    return next(slug for number in count(2) if (slug := f"{plain}-{number}") not in taken)


async def _check_slug(tx: Tx, tenant_id: str, slug: str) -> None:
    if slug in await queries.slugs_like(tx, tenant_id, slug):
        raise Conflict(f"There is a tool with the slug {slug} already")


# Sealing


def seal_context(tenant_id: str, tool_id: str) -> SealContext:
    return SealContext.of(Tool.auth_config, tenant_id, tool_id)


def _sealed(
    context: RequestContext,
    tenant_id: str,
    tool_id: str,
    auth: AuthConfig | None,
    leads: tuple[str, dict[str, Any]],
) -> bytes | None:
    """With where the tool leads: a config that is edited later does not take it along."""
    if auth is None:
        return None
    return context.keyring.seal(
        auths.encode(auth, _destination(context, *leads)), seal_context(tenant_id, tool_id)
    )
