"""What other areas may call."""

from . import local_embedder, uploads
from .chunk_store import ChunkStore
from .embedding import embed_inputs
from .file_reader import FileReader
from .parsing import FORMATS, MIME_TYPES, Unreadable, kind_of
from .retrieval import Passages, find_passages
