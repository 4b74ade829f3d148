"""Searches the documents of an agent."""

from app.domain.agents.definition import api as agents
from app.kit.views import Data
from app.services import Services
from db.session import Scope

from . import retrieval
from .schemas import PassageView, SearchRequest


async def search(
    services: Services, scope: Scope, agent_id: str, request: SearchRequest
) -> Data[list[PassageView]]:
    """Searches an agent's documents without a model."""
    async with services.db.tx(scope, autocommit=True) as tx:
        runtime = await agents.find_runtime(tx, services.keyring, agent_id)
    if runtime.knowledge is None:
        return Data([])
    found = await retrieval.search(
        services,
        runtime.tenant_id,
        runtime.knowledge,
        request.query,
        request.limit,
        only_public=request.only_public,
    )
    return Data(
        [
            PassageView(
                chunk.document_id,
                chunk.document_name,
                chunk.text,
                chunk.page,
                chunk.row,
                chunk.heading,
                score,
            )
            for chunk, score in found
            if score >= request.min_score
        ]
    )
