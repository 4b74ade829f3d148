from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.kit.validation import NOT_BLANK

DocumentStatus = Literal["pending", "processing", "ready", "failed"]
Visibility = Literal["public", "internal"]

_ID = "doc_01k9x3m7e8c0v2q4r6t8w0y2a4"
_DOCUMENT = {
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
    "created_at": "2026-01-01T12:00:00Z",
    "processed_at": "2026-01-01T12:00:02Z",
}
_PASSAGE = {
    "document_id": _ID,
    "document_name": "handbook.pdf",
    "content": "The shop opens at 9 in the morning, on Sundays at 11.",
    "page": 3,
    "row": None,
    "heading": "Opening hours",
    "relevance_score": 0.92,
}


class DocumentView(msgspec.Struct):
    """`error` says why a document failed; the chunks of its last readable version stay in use.
    `refined_count` of the chunks are encoded by a sentence encoder already, which finds what is
    meant in other words. `language` is that of the text, as a code like "de". Agents answer
    visitors from `public` documents only, and everybody else also from `internal` ones.
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
    created_at: datetime
    processed_at: datetime | None


class DocumentChange(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"visibility": "internal"}

    visibility: Visibility


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


class SearchRequest(msgspec.Struct, kw_only=True):
    """`min_score` leaves out passages with a lower `relevance_score`, and `only_public` those of
    internal documents, as visitors do not see them.
    """

    example: ClassVar[dict[str, Any]] = {"query": "When does the shop open on Sundays?", "limit": 5}

    query: Annotated[str, Meta(min_length=1, max_length=10_000, pattern=NOT_BLANK)]
    limit: Annotated[int, Meta(ge=1, le=50)] = 5
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.0
    only_public: bool = False


class PassageView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _PASSAGE

    document_id: str
    document_name: str
    content: str
    page: int | None
    row: int | None
    heading: str | None
    relevance_score: float
