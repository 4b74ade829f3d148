"""The web search configs of agents, and the function that searches for a model."""

from typing import Any

import msgspec

from app.context import RequestContext
from app.domain.agents.definition import api as agents
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.agents.llm import api as models
from app.kit import validation
from app.kit.changes import apply_changes
from app.kit.views import build_view
from db.models import WebSearchConfig
from db.session import Tx

from . import queries
from .engines.registry import SearchEngines
from .errors import SearchEngineNotConfigured
from .schemas import UpdateWebSearchConfig, WebSearchConfigView


async def get_config(tx: Tx, agent_id: str) -> WebSearchConfigView:
    config = await queries.find_view(tx, agent_id)
    if config is None:
        raise AgentNotFound(f"There is no agent {agent_id[:64]}")
    return config


async def update_config(
    context: RequestContext, agent_id: str, data: UpdateWebSearchConfig
) -> WebSearchConfigView:
    return await _change(context, agent_id, validation.set_fields(data))


async def set_enabled(
    context: RequestContext, agent_id: str, *, enabled: bool
) -> WebSearchConfigView:
    return await _change(context, agent_id, {"enabled": enabled})


async def _change(
    context: RequestContext, agent_id: str, values: dict[str, Any]
) -> WebSearchConfigView:
    """Sets the fields that differ and emits an event if there are any."""
    agent = await agents.find(context.tx, agent_id, for_update=True)
    config = await queries.find(context.tx, agent_id)
    if config is None:
        defaults = msgspec.structs.asdict(WebSearchConfigView())
        config = WebSearchConfig(agent_id=agent.id, tenant_id=agent.tenant_id, **defaults)
    changed = apply_changes(config, values)
    if config.enabled:
        await _check_engine(context, config)
    if changed:
        session = await context.tx.session()
        session.add(config)
        await session.flush()
        await agents.emit_updated(context.tx, agent, ["web_search"])
    return build_view(WebSearchConfigView, config)


async def _check_engine(context: RequestContext, config: WebSearchConfig) -> None:
    """Raises SearchEngineNotConfigured when the engine lacks its address or its key."""
    name = config.search_engine
    engine = context.services.get(SearchEngines).find(name)
    if engine is None:
        raise SearchEngineNotConfigured(
            f"The search engine {name} has no address; the operator sets PARLEY_SEARXNG_URL"
        )
    if engine.key_provider is None:
        return
    key = await models.load_search_key(
        context.tx, context.keyring, config.tenant_id, engine.key_provider
    )
    if key is None:
        raise SearchEngineNotConfigured(
            f"The search engine {name} needs a key of the provider {engine.key_provider}; "
            "add one with POST /api/v1/api-keys"
        )
