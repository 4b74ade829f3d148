"""OpenAI's wire format of embeddings."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

MAX_INPUTS = 2048
# Of one text, in tokens.
MAX_TOKENS = 8192
_MODEL = "local/wordllama"

EmbeddingInput = str | list[int]


class EmbeddingRequest(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"model": _MODEL, "input": ["When does the shop open?"]}

    model: Annotated[
        str,
        Meta(max_length=250, description="The embedding model of this instance, with its provider"),
    ]
    input: Annotated[
        str | Annotated[list[str | int | list[int]], Meta(min_length=1, max_length=MAX_TOKENS)],
        Meta(
            description=f"A text, or up to {MAX_INPUTS} texts. Models of providers with OpenAI's "
            "wire format also take texts as lists of the numbers of their tokens"
        ),
    ]
    encoding_format: Annotated[
        Literal["float", "base64"] | None,
        Meta(description="`base64` is of little-endian 32-bit floats; `float` by default"),
    ] = None
    dimensions: Annotated[
        Annotated[int, Meta(ge=1, le=65_536)] | None,
        Meta(description="For models that have vectors of several lengths"),
    ] = None
    user: Annotated[str, Meta(max_length=256)] | None = None


class Embedding(msgspec.Struct):
    """A vector of length 1."""

    example: ClassVar[dict[str, Any]] = {
        "object": "embedding",
        "index": 0,
        "embedding": [0.6, -0.8],
    }

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(msgspec.Struct):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "object": "list",
        "data": [Embedding.example],
        "model": _MODEL,
        "usage": {"prompt_tokens": 6, "total_tokens": 6},
    }

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage
