"""How an agent searches its documents. The agent stores what differs from the defaults."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from .document_values import FieldValue, Label, Labels
from .schemas import ModelName

_Code = Annotated[str, Meta(min_length=2, max_length=3)]
_FieldValues = Annotated[list[FieldValue], Meta(min_length=1, max_length=20)]


class DocumentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A document must have one of the `tags`, be in one of the `languages`, and have each of the
    `fields` with this value, or with one of these values. What is empty asks for nothing.
    """

    example: ClassVar[dict[str, Any]] = {
        "tags": ["faq"],
        "languages": ["en", "de"],
        "fields": {"product": ["mill", "oven"]},
    }

    tags: Labels = []
    languages: Annotated[list[_Code], Meta(max_length=20)] = []
    fields: Annotated[
        dict[Label, FieldValue | Annotated[list[FieldValue], Meta(min_length=1, max_length=20)]],
        Meta(max_length=10),
    ] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.tags or self.languages or self.fields)


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
    filter: Annotated[
        DocumentFilter, Meta(description="Which documents the agent answers from; all by default")
    ] = msgspec.field(default_factory=DocumentFilter)
