"""The registry of tools: their fields, their config by type, and their sealed auth."""

import asyncio
import re
from itertools import count
from typing import Any

import msgspec
from sqlalchemy import select

from app.domain.agents import telling
from app.domain.events import service as events
from app.domain.tools import auths, configs, json_schema, queries
from app.domain.tools.auths import AUTHS, AuthConfig, CredentialAuth
from app.domain.tools.categories import CATEGORIES
from app.domain.tools.configs import KINDS, Config, FunctionConfig, ScriptConfig
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
from app.domain.vault import access as vault
from app.http import bodies, paging
from app.http.answers import filled
from app.http.errors import Conflict, Invalid
from app.http.paging import Page, Paged
from app.kit.crypto import Keyring, Place
from app.kit.egress import BlockedAddress, Guard
from app.kit.ids import new_id
from app.kit.sandbox import packages
from app.kit.texts import as_json, is_deeper
from app.security.principal import Principal
from app.settings import Settings
from db.fast import tenant_of
from db.models import Agent, AgentTool, Tool
from db.session import Tx

_SORTABLE = {
    "name": Tool.name,
    "slug": Tool.slug,
    "category": Tool.category,
    "tool_type": Tool.tool_type,
    "usage_count": Tool.usage_count,
    "last_used_at": Tool.last_used_at,
    "created_at": Tool.created_at,
    "updated_at": Tool.updated_at,
}
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 80
_CONFIG_CHARS = 600_000
_DEEPEST = 32
_STATS_HOURS = 30 * 24


class Registry(msgspec.Struct, frozen=True):
    """Somebody at the registry, and what is needed to judge what they bring."""

    tx: Tx
    settings: Settings
    keyring: Keyring
    guard: Guard
    principal: Principal


async def page_of(
    tx: Tx,
    page: Page,
    *,
    category: str | None,
    tool_type: str | None,
    search: str | None,
    sort: str | None,
) -> Paged[ToolSummary]:
    wanted = select(Tool)
    if category:
        wanted = wanted.where(Tool.category == category)
    if tool_type:
        wanted = wanted.where(Tool.tool_type == tool_type)
    if search:
        wanted = wanted.where(
            paging.contains(Tool.name, search) | paging.contains(Tool.description, search)
        )
    ordering = paging.order(sort, _SORTABLE, "-created_at", Tool.id)
    rows, total = await paging.fetch(tx, wanted, page, ordering)
    return paging.paged([filled(ToolSummary, row) for row in rows], total, page)


async def categories(tx: Tx) -> list[CategoryView]:
    counts = await queries.categories(tx, tenant_of(tx))
    return [
        CategoryView(one.slug, one.name, one.description, one.icon, counts.get(one.slug, 0))
        for one in CATEGORIES
    ]


async def find(tx: Tx, tool_id: str, *, for_update: bool = False) -> Tool:
    found = await (await tx.session()).get(Tool, tool_id, with_for_update=for_update)
    if found is None:
        raise ToolNotFound(f"There is no tool {tool_id[:64]}")
    return found


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
    return filled(FullTool, tool, usage_stats=used)


def share(part: int, whole: int) -> float:
    """Percent, two places."""
    return round(100 * part / whole, 2) if whole else 0.0


async def create(at: Registry, data: CreateTool) -> ToolView:
    tool_id, tenant_id = new_id("tool"), at.principal.home
    _check_auth_type(data.tool_type, data.auth_type)
    config = await _checked(at, data.tool_type, data.config, plain=data.auth_type == "none")
    auth = None
    if data.auth_config and data.auth_type != "none":
        auth = await checked_auth(at, tenant_id, data.auth_type, data.auth_config, "auth_config")
    for name in ("input_schema", "output_schema"):
        _check_schema(name, getattr(data, name))
    tool = Tool(
        id=tool_id,
        tenant_id=tenant_id,
        name=data.name,
        slug=await _slug(at.tx, tenant_id, data),
        description=data.description,
        category=data.category,
        tool_type=data.tool_type,
        config=config,
        auth_type=data.auth_type,
        auth_config=_sealed(at, tenant_id, tool_id, auth, (data.tool_type, config)),
        input_schema=data.input_schema,
        output_schema=data.output_schema,
        is_enabled=data.is_enabled,
    )
    session = await at.tx.session()
    session.add(tool)
    await session.flush()
    created = ToolCreated(tool.id, tool.name, tool.tool_type)
    await events.emit(at.tx, created, tenant_id=tenant_id)
    return filled(ToolView, tool)


async def update(at: Registry, tool_id: str, data: UpdateTool) -> FullTool:
    tool = await find(at.tx, tool_id, for_update=True)
    values = bodies.given(data)
    for name in ("input_schema", "output_schema"):
        _check_schema(name, values.get(name))
    if values.get("slug", tool.slug) != tool.slug:
        await _check_slug(at.tx, tool.tenant_id, values["slug"])
    given_auth = values.pop("auth_config", msgspec.UNSET)
    values |= await _new_config(at, tool, values)
    values |= await _new_auth(at, tool, values, given_auth)
    await _keep_overrides_home(at, tool, values)
    changed = [name for name, value in values.items() if getattr(tool, name) != value]
    for name in changed:
        setattr(tool, name, values[name])
    if changed:
        await (await at.tx.session()).flush()
        updated = ToolUpdated(tool.id, tool.name, tool.tool_type, changed)
        await events.emit(at.tx, updated, tenant_id=tool.tenant_id)
    return await _full(at.tx, tool)


async def _new_config(at: Registry, tool: Tool, values: dict[str, Any]) -> dict[str, Any]:
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
    return {"config": await _checked(at, tool_type, whole, plain=auth_type == "none")}


async def _new_auth(at: Registry, tool: Tool, values: dict[str, Any], given: Any) -> dict[str, Any]:
    """What was given; and nothing is kept for somewhere else, nor for another kind of auth."""
    auth_type = values.get("auth_type", tool.auth_type)
    moved = _destination(at, values.get("tool_type", tool.tool_type), values["config"]) != (
        _destination(at, tool.tool_type, tool.config)
    )
    if moved and await queries.has_rules(at.tx, tool.tenant_id, tool.id):
        # Where a credential is sent is a decision about the credential.
        at.principal.require("credentials:write")
    if given is not msgspec.UNSET:
        if not given or auth_type == "none":
            return {"auth_config": None}
        auth = await checked_auth(at, tool.tenant_id, auth_type, given, "auth_config")
        leads = (values.get("tool_type", tool.tool_type), values["config"])
        return {"auth_config": _sealed(at, tool.tenant_id, tool.id, auth, leads)}
    if auth_type != tool.auth_type:
        return {"auth_config": None}
    if moved and tool.auth_config is not None:
        raise Invalid.field("auth_config", "is needed again: the tool leads to another host now")
    return {}


async def _keep_overrides_home(at: Registry, tool: Tool, values: dict[str, Any]) -> None:
    """An agent's own auth for this tool is for where it led, and of the kind that it was."""
    new_type = values.get("tool_type", tool.tool_type)
    same_kind = values.get("auth_type", tool.auth_type) == tool.auth_type
    links = await (await at.tx.session()).scalars(
        select(AgentTool).where(AgentTool.tool_id == tool.id, AgentTool.override_auth.is_not(None))
    )
    for link in links:
        override = link.config_override or {}
        before = _overridden_destination(at, tool.tool_type, tool.config, override)
        after = _overridden_destination(at, new_type, values["config"], override)
        if after is None or after != before or not same_kind:
            link.override_auth = None


def _overridden_destination(
    at: Registry, tool_type: str, config: dict[str, Any], override: dict[str, Any]
) -> tuple[Any, ...] | None:
    """None where the two do not fit."""
    whole = configs.kept(tool_type, configs.merged(config, override))
    try:
        return _destination(at, tool_type, whole)
    except (msgspec.ValidationError, BlockedAddress):
        return None


def _destination(at: Registry, tool_type: str, config: dict[str, Any]) -> tuple[Any, ...]:
    return destination(tool_type, as_config(tool_type, config), at.guard)


def destination(tool_type: str, config: Config, guard: Guard) -> tuple[Any, ...]:
    return (tool_type, *configs.destination(config, guard))


def as_config(tool_type: str, stored: dict[str, Any]) -> Config:
    found: Config = msgspec.convert(stored, KINDS[tool_type].config)
    return found


async def delete(tx: Tx, tool_id: str) -> None:
    """Takes its runs along, and leaves every agent that has it."""
    tool = await find(tx, tool_id, for_update=True)
    await vault.forget_integration(tx, tool.tenant_id, "tool", [tool.id])
    session = await tx.session()
    having = select(Agent).join(AgentTool, AgentTool.agent_id == Agent.id)
    losing = list(await session.scalars(having.where(AgentTool.tool_id == tool.id)))
    await session.delete(tool)
    await session.flush()
    for agent in losing:
        await telling.tell(tx, agent, "tools")
    gone = ToolDeleted(tool.id, tool.name, tool.tool_type)
    await events.emit(tx, gone, tenant_id=tool.tenant_id)


# Judging what is brought


def _check_auth_type(tool_type: str, auth_type: str) -> None:
    if auth_type != "none" and not KINDS[tool_type].takes_auth:
        raise Invalid.field("auth_type", f"must be none for a tool of type {tool_type}")


async def _checked(
    at: Registry, tool_type: str, given: dict[str, Any], *, plain: bool
) -> dict[str, Any]:
    return await checked_config(at, tool_type, given, "config", plain=plain)


async def checked_config(
    at: Registry, tool_type: str, given: dict[str, Any], name: str, *, plain: bool
) -> dict[str, Any]:
    """What of a config is stored, once all of it is right."""
    if is_deeper(given, _DEEPEST):
        raise Invalid.field(name, f"is nested deeper than {_DEEPEST} levels")
    kept = configs.kept(tool_type, given)
    config = configs.checked(tool_type, kept, at.guard, name, plain=plain)
    if len(as_json(kept)) > _CONFIG_CHARS:
        raise Invalid.field(name, f"must have at most {_CONFIG_CHARS} characters")
    if isinstance(config, FunctionConfig | ScriptConfig) and config.packages:
        if config.runtime != "python":
            raise Invalid.field(f"{name}.packages", f"there are none for {config.runtime}")
        home = at.settings.sandbox_home
        missing = await asyncio.to_thread(packages.missing, home, config.packages)
        if missing:
            said = f"not installed here: {', '.join(missing)}; see `parley tools packages`"
            raise Invalid.field(f"{name}.packages", said)
    return kept


async def checked_auth(
    at: Registry, tenant_id: str, auth_type: str, given: dict[str, Any], name: str
) -> AuthConfig:
    auth = auths.checked(auth_type, given, at.guard, name)
    if isinstance(auth, CredentialAuth):
        found = await vault.type_of(at.tx, tenant_id, auth.credential_id)
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


def place_of(tenant_id: str, tool_id: str) -> Place:
    return Place(tenant=tenant_id, table="tools", record=tool_id, field="auth_config")


def _sealed(
    at: Registry,
    tenant_id: str,
    tool_id: str,
    auth: AuthConfig | None,
    leads: tuple[str, dict[str, Any]],
) -> bytes | None:
    """With where the tool leads: a config that is edited later does not take it along."""
    if auth is None:
        return None
    return at.keyring.seal(
        auths.packed(auth, _destination(at, *leads)), place_of(tenant_id, tool_id)
    )
