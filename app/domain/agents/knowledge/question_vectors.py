"""The vectors of a question: by the embedding model, and by the sentence encoders that have encoded
passages.
"""

import asyncio
from typing import Any, NamedTuple

from app.domain.agents.definition.api import KnowledgeInfo
from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured
from app.kit import logs
from app.services import Services

from . import local_embedder
from .embedders import Embedder
from .embedding import embed_texts
from .encoders import english
from .encoders.registry import SentenceEncoders
from .question_languages import may_be_english

log = logs.get("knowledge")


class QuestionVectors(NamedTuple):
    """`vector` is None when it is not needed, or the model failed: words alone are better than no
    answer. `encodings` are by the names of encoders.
    """

    vector: list[float] | None
    encodings: dict[str, list[float]]


async def encode_question(
    services: Services, tenant_id: str, base: KnowledgeInfo, text: str
) -> QuestionVectors:
    if base.embedding_model == local_embedder.NAME:
        return await asyncio.to_thread(_encode_locally, services, base, text)
    model = base.embedding_model
    try:
        vectors = await embed_texts(services, tenant_id, base.agent_id, model, [text])
    except (ModelFailed, ModelNotConfigured) as error:
        log.warning("a question was not embedded", model=model, reason=error.message[:200])
        return QuestionVectors(None, {})
    return QuestionVectors(_to_list(vectors[0]), {})


def _encode_locally(services: Services, base: KnowledgeInfo, text: str) -> QuestionVectors:
    """Vectors of the table are not needed once all passages are encoded."""
    encoders = services.get(SentenceEncoders)
    names = _choose_encoders(base, text) if encoders.enabled else []
    encodings = {name: encoders.encode(name, [text])[0].tolist() for name in names}
    if encodings and base.is_refined:
        return QuestionVectors(None, encodings)
    vectors = services.get(Embedder).local.embed([text])
    return QuestionVectors(_to_list(vectors[0]), encodings)


def _choose_encoders(base: KnowledgeInfo, text: str) -> list[str]:
    """An English encoder finds any passage similar to a question in another language, so it does
    not compare those that also passages in other languages may answer.
    """
    has_others = any(language != "en" for language in base.languages)
    if not has_others or may_be_english(text):
        return base.encoders
    return [name for name in base.encoders if name != english.INFO.name] or base.encoders


def _to_list(vector: Any) -> list[float] | None:
    """A text without any known token has no direction."""
    return vector.tolist() if vector.any() else None
