"""What other areas may call."""

from . import documents, local_embedder
from .chunk_store import ChunkStore
from .retrieval import Passages, find_passages
