from typing import Annotated, Literal

from app.domain.area import Event, example


class DocumentProcessed(Event):
    """A document of an agent's knowledge base was read, or failed."""

    type = "system.document.processed"

    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    document_id: Annotated[str, example("doc_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("handbook.pdf")]
    status: Annotated[Literal["ready", "failed"], example("ready")]
    chunk_count: Annotated[int, example(42)]
    error: Annotated[str | None, example(None)] = None


class DocumentDeleted(Event):
    """A document was deleted from an agent's knowledge base."""

    type = "system.document.deleted"

    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    document_id: Annotated[str, example("doc_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("handbook.pdf")]
