from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.domain.agents.definition.api import (
    DocumentFilter,
    FieldValues,
    Labels,
    LanguageCode,
    trim_labels,
)
from app.kit.errors import Invalid
from app.kit.validation import NOT_BLANK

from .reader import Reader

DocumentStatus = Literal["pending", "processing", "ready", "failed"]
Visibility = Literal["public", "internal"]
Moment = Annotated[datetime, Meta(tz=True)]

_ID = "doc_01k9x3m7e8c0v2q4r6t8w0y2a4"
_DOCUMENT: dict[str, Any] = {
    "id": _ID,
    "name": "handbook.pdf",
    "status": "ready",
    "error": None,
    "visibility": "public",
    "mime_type": "application/pdf",
    "size_bytes": 48213,
    "chunk_count": 42,
    "refined_count": 42,
    "language": "en",
    "tags": ["faq"],
    "groups": [],
    "valid_from": None,
    "valid_until": None,
    "fields": {"product": "mill"},
    "created_at": "2026-01-01T12:00:00Z",
    "processed_at": "2026-01-01T12:00:02Z",
    "source_id": None,
    "source_url": None,
}
_PROGRESS: dict[str, Any] = {
    "stage": "ready",
    "share": 1.0,
    "passages_done": 42,
    "passages_total": 42,
    "attempt": 1,
    "max_attempts": 5,
    "next_attempt_at": None,
    "last_error": None,
    "is_stuck": False,
    "last_seen_at": "2026-01-01T12:00:01Z",
}
_DOCUMENT["progress"] = _PROGRESS
_PASSAGE = {
    "document_id": _ID,
    "document_name": "handbook.pdf",
    "content": "The shop opens at 9 in the morning, on Sundays at 11.",
    "page": 3,
    "row": None,
    "heading": "Opening hours",
    "relevance_score": 0.92,
    "vector_score": 0.71,
    "word_score": 6.4,
    "is_quoted": True,
}


class DocumentProgress(msgspec.Struct):
    """How far the reading of a document is. It waits for a worker, is read and split into passages,
    and these are embedded; then it is `ready`, and agents answer from it. While `refining`, a
    sentence encoder goes over the passages. `share` is null where it is not known.

    While it waits for its next attempt, at `next_attempt_at`, `last_error` says why the last one
    failed. `last_seen_at` is the last sign of life, to half a minute; `is_stuck` is true when
    nobody works on it though somebody should.
    """

    example: ClassVar[dict[str, Any]] = _PROGRESS

    stage: Literal["waiting", "reading", "embedding", "refining", "ready", "failed"]
    share: float | None
    passages_done: int | None
    passages_total: int | None
    attempt: int
    max_attempts: int
    next_attempt_at: datetime | None
    last_error: str | None
    is_stuck: bool
    last_seen_at: datetime | None


class RetriedDocuments(msgspec.Struct):
    """`retried` documents are read again. `not_stored` counts failed ones whose file was refused
    and not stored; upload these again.
    """

    example: ClassVar[dict[str, Any]] = {"retried": 12, "not_stored": 1}

    retried: int
    not_stored: int


class DocumentView(msgspec.Struct):
    """`error` says why a document failed; the chunks of its last readable version stay in use.
    `refined_count` of the chunks are encoded by a sentence encoder already, which finds what is
    meant in other words. `language` is that of the text, as a code like "de", unless another one
    was set. `source_id` is the source that keeps the document fresh, and `source_url` the address
    that it came from.

    Agents answer visitors from `public` documents only, and everybody else also from `internal`
    ones. Of the documents with `groups`, they answer a visitor from those that name a group of
    theirs. Before `valid_from` and from `valid_until` on, they answer nobody from a document.
    """

    example: ClassVar[dict[str, Any]] = _DOCUMENT

    id: str
    name: str
    status: DocumentStatus
    error: str | None
    visibility: Visibility
    mime_type: str
    size_bytes: int
    chunk_count: int
    refined_count: int
    language: str | None
    tags: list[str]
    groups: list[str]
    valid_from: datetime | None
    valid_until: datetime | None
    fields: dict[str, Any]
    created_at: datetime
    processed_at: datetime | None
    source_id: str | None
    source_url: str | None
    progress: DocumentProgress


class DocumentChange(msgspec.Struct, kw_only=True):
    """What is left out stays. `tags` and `groups` are names of one line; spaces around them do not
    count. `language` null stands for that of the text, and an empty list of `groups` for all who
    may read the document otherwise. `fields` replaces all of them.
    """

    example: ClassVar[dict[str, Any]] = {"visibility": "internal", "tags": ["faq"]}

    visibility: Visibility | UnsetType = UNSET
    tags: Labels | UnsetType = UNSET
    language: LanguageCode | UnsetType | None = UNSET
    groups: Labels | UnsetType = UNSET
    valid_from: Moment | UnsetType | None = UNSET
    valid_until: Moment | UnsetType | None = UNSET
    fields: FieldValues | UnsetType = UNSET


class ListConditions(msgspec.Struct, frozen=True, kw_only=True):
    """Which documents a list has; None for all. `valid`: whether they are valid now."""

    status: DocumentStatus | None = None
    visibility: Visibility | None = None
    tag: str | None = None
    language: str | None = None
    group: str | None = None
    valid: bool | None = None
    source_id: str | None = None


class TrainingAccepted(msgspec.Struct):
    """`document_count` is the number of uploaded files; `documents` has one for each."""

    example: ClassVar[dict[str, Any]] = {
        "status": "training",
        "document_count": 1,
        "message": "1 document is being read",
        "documents": [
            {
                **_DOCUMENT,
                "status": "pending",
                "chunk_count": 0,
                "refined_count": 0,
                "language": None,
                "processed_at": None,
            },
        ],
    }

    status: Literal["training", "failed"]
    document_count: int
    message: str
    documents: list[DocumentView]


class ChunkView(msgspec.Struct):
    """`page` is that of a PDF, or the slide of a presentation. `row` is the first row: in a CSV
    file after its header, in a JSON list from 1 on, in a sheet as the program shows it. `heading`
    has the headings above the passage, like "Delivery > Abroad"; for a sheet its name, for a book
    its chapter.
    """

    example: ClassVar[dict[str, Any]] = {
        "position": 0,
        "text": "The shop opens at 9 in the morning, on Sundays at 11.",
        "page": 3,
        "row": None,
        "heading": "Opening hours",
    }

    position: int
    text: str
    page: int | None
    row: int | None
    heading: str | None


class ReaderChoice(msgspec.Struct, kw_only=True):
    """On whose behalf a search is made."""

    only_public: bool = False
    groups: Labels = []

    def choose_reader(self) -> Reader:
        """Raises Invalid for groups of somebody who is no visitor."""
        if self.only_public:
            return Reader.visitor(trim_labels(self.groups))
        if self.groups:
            raise Invalid.field("groups", "needs only_public: they are those of a visitor")
        return Reader.inside()


class SearchRequest(ReaderChoice, kw_only=True):
    """`min_score` leaves out passages with a lower `relevance_score`. `only_public` searches as for
    a visitor of these `groups`. Documents must fulfil the `filter`, and that of the agent's
    retrieval settings.
    """

    example: ClassVar[dict[str, Any]] = {"query": "When does the shop open on Sundays?", "limit": 5}

    query: Annotated[str, Meta(min_length=1, max_length=10_000, pattern=NOT_BLANK)]
    limit: Annotated[int, Meta(ge=1, le=50)] = 5
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.0
    filter: DocumentFilter = msgspec.field(default_factory=DocumentFilter)


class PassageView(msgspec.Struct):
    """`relevance_score` is that of both parts of the search together: `vector_score` is how similar
    the passage is to the question, `word_score` how well its words match; null where that part did
    not find it. `is_quoted`: a turn with this question alone would quote the passage, if it fits
    into the context of its model.
    """

    example: ClassVar[dict[str, Any]] = _PASSAGE

    document_id: str
    document_name: str
    content: str
    page: int | None
    row: int | None
    heading: str | None
    relevance_score: float
    vector_score: float | None
    word_score: float | None
    is_quoted: bool
