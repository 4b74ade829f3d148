"""Searches the documents of an agent."""

from app.domain.agents.definition import api as agents
from app.kit.views import Data
from app.services import Services
from db.session import Scope

from . import retrieval
from .chunk_store import Matches
from .fusion import Key
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
    found = await retrieval.explain(
        services,
        runtime.tenant_id,
        runtime.knowledge,
        request.query,
        request.limit,
        reader=reader,
        filters=[request.filter],
    )
    by_vector, by_words = _score(found.matches)
    return Data(
        [
            _to_view(passage, by_vector, by_words, found.quoted)
            for passage in found.passages
            if passage.score >= request.min_score
        ]
    )


_Scores = dict[Key, float]


def _score(matches: Matches) -> tuple[_Scores, _Scores]:
    """Returns the similarities of the chunks, those of a sentence encoder first, and the scores of
    their words.
    """
    by_vector = {chunk.key: score for chunk, score in matches.by_vector}
    for found in matches.by_encoding.values():
        by_vector |= {chunk.key: score for chunk, score in found}
    return by_vector, {chunk.key: score for chunk, score in matches.by_text}


def _to_view(
    passage: Passage, by_vector: _Scores, by_words: _Scores, quoted: frozenset[Key]
) -> PassageView:
    chunk = passage.chunk
    return PassageView(
        chunk.document_id,
        chunk.document_name,
        passage.text,
        chunk.page,
        chunk.row,
        chunk.heading,
        passage.score,
        _round(by_vector.get(chunk.key)),
        _round(by_words.get(chunk.key)),
        chunk.key in quoted,
    )


def _round(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
