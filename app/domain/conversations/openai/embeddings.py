"""Embeddings for OpenAI clients: reads the inputs of a request, and encodes the vectors."""

import base64
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import msgspec

from app.domain.agents.knowledge import api as knowledge
from app.domain.agents.llm.api import EmbeddingInputs
from app.kit.errors import Invalid, Problem
from app.kit.pacing import Pace
from app.services import Services

from . import model_names
from .embedding_schemas import MAX_INPUTS, MAX_TOKENS, EmbeddingRequest, EmbeddingUsage

MAX_CHARS: Final = 40_000
MAX_TOTAL_CHARS: Final = 1_200_000
MAX_TOTAL_TOKENS: Final = 300_000
# How many numbers are encoded at a time.
_STEP = 16_384

_encode = msgspec.json.Encoder().encode


async def embed(
    services: Services, tenant_id: str, data: EmbeddingRequest, inputs: EmbeddingInputs
) -> AsyncIterator[bytes]:
    """Returns the parts of the answer; as a whole, the largest one would take a hundred megabytes.
    Everything that can fail happens before the first part.
    """
    answer = await knowledge.embed_inputs(services, tenant_id, inputs, data.dimensions)
    usage = EmbeddingUsage(answer.prompt_tokens, answer.prompt_tokens)
    model = services.settings.embedding_model
    return _encode_answer(model, answer.vectors, usage, is_base64=data.encoding_format == "base64")


def read_inputs(services: Services, data: EmbeddingRequest) -> EmbeddingInputs:
    """Returns texts, or texts as lists of tokens. Raises Invalid, and ModelNotFound."""
    model = services.settings.embedding_model
    if model_names.find([model], data.model) is None:
        raise model_names.build_refusal([model], data.model)
    items = data.input if isinstance(data.input, list) else [data.input]
    texts = [item for item in items if isinstance(item, str)]
    lists = [item for item in items if isinstance(item, list)]
    tokens = [item for item in items if isinstance(item, int)]
    kinds: list[EmbeddingInputs] = [texts, lists, [tokens] if tokens else []]
    kinds = [kind for kind in kinds if kind]
    if len(kinds) > 1:
        raise Invalid.field("input", "must be texts, or lists of tokens, or tokens")
    Invalid.check(_list_problems(kinds[0]))
    return kinds[0]


def _list_problems(inputs: EmbeddingInputs) -> Iterator[Problem]:
    limit, total, unit = MAX_TOKENS, MAX_TOTAL_TOKENS, "tokens"
    if isinstance(inputs[0], str):
        limit, total, unit = MAX_CHARS, MAX_TOTAL_CHARS, "characters"
    if len(inputs) > MAX_INPUTS:
        yield "input", f"must have at most {MAX_INPUTS} texts"
    if sum(map(len, inputs)) > total:
        yield "input", f"must have at most {total} {unit} in total"
    for number, item in enumerate(inputs):
        if not item:
            yield f"input.{number}", "must not be empty"
        elif len(item) > limit:
            yield f"input.{number}", f"must have at most {limit} {unit}"


async def _encode_answer(
    model: str, vectors: Any, usage: EmbeddingUsage, *, is_base64: bool
) -> AsyncIterator[bytes]:
    pace = Pace()
    yield b'{"object":"list","data":['
    step = max(1, _STEP // vectors.shape[1])
    for start in range(0, len(vectors), step):
        items = (
            b'{"object":"embedding","index":%d,"embedding":%b}'
            % (index, _encode_vector(vector, is_base64=is_base64))
            for index, vector in enumerate(vectors[start : start + step], start)
        )
        yield (b"," if start else b"") + b",".join(items)
        await pace.rest()
    yield b'],"model":%b,"usage":%b}' % (_encode(model), _encode(usage))


def _encode_vector(vector: Any, *, is_base64: bool) -> bytes:
    if is_base64:
        return b'"%b"' % base64.b64encode(vector.astype("<f4").tobytes())
    return _encode(vector.tolist())
