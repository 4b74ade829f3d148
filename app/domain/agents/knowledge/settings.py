"""How an agent searches its documents."""

from typing import Any

import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import RetrievalSettings
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.agents.llm.api import LOCAL, provider_of, require_offered, require_reranker
from app.kit.changes import apply_changes
from app.kit.errors import Invalid
from db.session import Tx

from . import queries


async def get(tx: Tx, agent_id: str) -> RetrievalSettings:
    settings = await queries.find_settings(tx, agent_id)
    if settings is None:
        raise AgentNotFound(f"There is no agent {agent_id[:64]}")
    return settings


async def replace(tx: Tx, agent_id: str, settings: RetrievalSettings) -> RetrievalSettings:
    agent = await agents.find(tx, agent_id, for_update=True)
    await _check_models(tx, agent.tenant_id, settings)
    if apply_changes(agent, {"retrieval": _list_differences(settings) or None}):
        await (await tx.session()).flush()
        await agents.emit_updated(tx, agent, ["retrieval"])
    return settings


async def _check_models(tx: Tx, tenant_id: str, settings: RetrievalSettings) -> None:
    """Raises Invalid for a model that nobody offers, or that is of no use here."""
    if settings.rerank_model is not None:
        await require_reranker(tx, tenant_id, settings.rerank_model, "rerank_model")
    if settings.question_model is None:
        return
    if provider_of(settings.question_model) == LOCAL:
        problem = "must be a provider's model: the local one is too slow to be asked twice"
        raise Invalid.field("question_model", problem)
    await require_offered(tx, tenant_id, settings.question_model, "question_model")


def _list_differences(settings: RetrievalSettings) -> dict[str, Any]:
    values, defaults = map(msgspec.to_builtins, (settings, RetrievalSettings()))
    return {name: value for name, value in values.items() if value != defaults[name]}
