"""Has a provider's reranker order the passages that a search found."""

from typing import Final

import msgspec

from app.domain.agents.definition.api import KnowledgeInfo
from app.domain.agents.llm.api import Models, Ranking, RerankRequest, load_target, rerank_cost_usd
from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured
from app.domain.agents.usage import api as usage
from app.domain.agents.usage.api import ModelCall
from app.kit import logs
from app.services import Services

from .fusion import Candidate

log = logs.get("knowledge")

# A reranker can raise a passage that is far behind.
_CANDIDATES: Final = 30
_MAX_PASSAGE_CHARS = 2000


def count_candidates(base: KnowledgeInfo, limit: int) -> int:
    """Returns how many passages are ranked, for a search that returns this many."""
    return limit if base.settings.rerank_model is None else max(limit, _CANDIDATES)


async def rerank(
    services: Services, tenant_id: str, base: KnowledgeInfo, query: str, found: list[Candidate]
) -> list[Candidate]:
    """Returns the passages in the order of the agent's reranker, with its scores; as they are when
    the agent has none, or when it fails.
    """
    model = base.settings.rerank_model
    if model is None or len(found) < 2:  # noqa: PLR2004  # one passage has no order
        return found
    seconds = base.settings.rerank_timeout_ms / 1000
    texts = [candidate.chunk.text[:_MAX_PASSAGE_CHARS] for candidate in found]
    try:
        ranking = await _rank(services, tenant_id, model, RerankRequest(query, texts, seconds))
    except (ModelFailed, ModelNotConfigured) as error:
        log.warning("passages were not reranked", model=model, reason=error.message[:200])
        return found
    await _count_usage(services, tenant_id, base.agent_id, model, ranking)
    ranked = [
        msgspec.structs.replace(candidate, score=round(score, 4))
        for candidate, score in zip(found, ranking.scores, strict=True)
    ]
    return sorted(ranked, key=lambda candidate: -candidate.score)


async def _rank(services: Services, tenant_id: str, model: str, request: RerankRequest) -> Ranking:
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        target = await load_target(tx, services.keyring, tenant_id, model)
    return await services.get(Models).rerank(target, request)


async def _count_usage(
    services: Services, tenant_id: str, agent_id: str, model: str, ranking: Ranking
) -> None:
    tokens = ranking.prompt_tokens
    cost = await rerank_cost_usd(model, tokens, ranking.searches)
    call = ModelCall("rerank", model, tokens, 0, cost)
    await usage.add_call(services.db, tenant_id, agent_id, call)
