from typing import Any, ClassVar, Literal

from app.domain.area import Event


class DocumentProcessed(Event):
    type: ClassVar[str] = "system.document.processed"
    description: ClassVar[str] = "A document of an agent's knowledge base was read, or failed"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "document_id": "doc_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "handbook.pdf",
        "status": "ready",
        "chunk_count": 42,
        "error": None,
    }

    agent_id: str
    document_id: str
    name: str
    status: Literal["ready", "failed"]
    chunk_count: int
    error: str | None = None


class DocumentDeleted(Event):
    type: ClassVar[str] = "system.document.deleted"
    description: ClassVar[str] = "A document was deleted from an agent's knowledge base"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "document_id": "doc_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "handbook.pdf",
    }

    agent_id: str
    document_id: str
    name: str
