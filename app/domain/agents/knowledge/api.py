"""What other areas may call."""

from app.domain.agents.knowledge import documents, local_embedder
from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.domain.agents.knowledge.retrieval import Passages, find_passages
