"""What a reply was made from: a passage of a document, or a page of the web."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

# Like [1] or [1, 2].
_CITATION = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")


class SourceView(msgspec.Struct, frozen=True):
    """`metadata` has those of document_id, page, row, heading, number and url that the source has.
    With `number` the text cites it, like [1].
    """

    example: ClassVar[dict[str, Any]] = {
        "document_name": "handbook.pdf",
        "chunk_preview": "The shop opens at 9 in the morning, on Sundays at 11.",
        "relevance_score": 0.92,
        "metadata": {
            "document_id": "doc_01k9x3m7e8c0v2q4r6t8w0y2a4",
            "page": 3,
            "heading": "Opening hours",
            "number": 1,
        },
    }

    document_name: str
    chunk_preview: str
    relevance_score: float
    metadata: dict[str, Any] = {}


def select_cited(text: str, passages: Sequence[SourceView]) -> list[SourceView]:
    """Returns the passages that the text cites by their numbers, from 1 on, each with its number.
    If it cites none, all are returned.
    """
    numbers = {int(number) for group in _CITATION.findall(text) for number in group.split(",")}
    cited = [
        msgspec.structs.replace(passage, metadata={**passage.metadata, "number": number})
        for number, passage in enumerate(passages, 1)
        if number in numbers
    ]
    return cited or list(passages)
