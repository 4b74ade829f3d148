"""How an agent searches its documents. The agent stores what differs from the defaults."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from .schemas import ModelName


class RetrievalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are the settings of an agent that has none."""

    example: ClassVar[dict[str, Any]] = {"max_passages": 5, "rerank_model": "cohere/rerank-v3.5"}

    max_passages: Annotated[
        int, Meta(ge=1, le=20, description="The most passages that a turn quotes to the model")
    ] = 5
    rerank_model: (
        Annotated[
            ModelName,
            Meta(
                description="Orders what a search finds: cohere/…, jina/…, voyage/…, or a model of "
                "a provider whose key has a base_url; null for none"
            ),
        ]
        | None
    ) = None
    rerank_timeout_ms: Annotated[
        int,
        Meta(
            ge=100,
            le=5000,
            description="How long a search waits for the reranker before it keeps its own order",
        ),
    ] = 800
    complete_questions: Annotated[
        Literal["words", "model", "off"],
        Meta(
            description="What makes a question whole that goes on from an earlier one: words of "
            "that one, a call of a model, or nothing"
        ),
    ] = "words"
    question_model: (
        Annotated[
            ModelName,
            Meta(description="The model for that; null for the agent's own"),
        ]
        | None
    ) = None
