from datetime import datetime
from typing import Any, ClassVar

import msgspec

from app.domain.agents.definition.api import Status

_DOCUMENTS: dict[str, Any] = {
    "count": 12,
    "passage_count": 480,
    "failed_count": 1,
    "working_count": 0,
    "changed_at": "2026-01-01T12:00:02Z",
}


class DocumentFigures(msgspec.Struct):
    """`working_count` documents wait for a worker or are read. `changed_at` is when the newest was
    read last; null without documents.
    """

    example: ClassVar[dict[str, Any]] = _DOCUMENTS

    count: int
    passage_count: int
    failed_count: int
    working_count: int
    changed_at: datetime | None


class AgentKnowledge(msgspec.Struct):
    """An agent, also a sub-agent, and how many documents it answers from."""

    example: ClassVar[dict[str, Any]] = {
        "id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Shop assistant",
        "status": "published",
        "documents": _DOCUMENTS,
    }

    id: str
    name: str
    status: Status
    documents: DocumentFigures
