"""What a reply was made from: a passage of a document, or a page of the web."""

from typing import Any

import msgspec


class SourceView(msgspec.Struct, frozen=True):
    """`metadata` has those of document_id, page, row and url that the source has."""

    document_name: str
    chunk_preview: str
    relevance_score: float
    metadata: dict[str, Any] = {}
