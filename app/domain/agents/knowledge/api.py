"""What other areas may call."""

from . import local_embedder, source_documents, uploads
from .chunk_store import ChunkStore
from .embedding import embed_inputs
from .file_reader import FileReader
from .metadata import list_columns
from .parsing import FORMATS, MIME_TYPES, Kind, Unreadable, kind_of, read_text
from .reader import Reader
from .retrieval import Passages, find_passages
