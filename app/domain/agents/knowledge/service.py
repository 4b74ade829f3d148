"""Searches the documents of an agent."""

from app.domain.agents.definition import api as agents
from app.kit.views import Data
from app.services import Services
from db.session import Scope

from . import retrieval
from .passages import Passage
from .schemas import PassageView, SearchRequest


async def search(
    services: Services, scope: Scope, agent_id: str, request: SearchRequest
) -> Data[list[PassageView]]:
    """Searches an agent's documents without a model."""
    reader = request.choose_reader()
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
        reader=reader,
        filters=[request.filter],
    )
    return Data([_to_view(passage) for passage in found if passage.score >= request.min_score])


def _to_view(passage: Passage) -> PassageView:
    chunk = passage.chunk
    return PassageView(
        chunk.document_id,
        chunk.document_name,
        passage.text,
        chunk.page,
        chunk.row,
        chunk.heading,
        passage.score,
    )
