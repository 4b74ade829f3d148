"""Puts one document into its agent's table: read, embed, replace its chunks in one commit."""

from app.kit.files import FileNotStored
from app.services import Services
from db.fast import Row

from . import parsing
from .chunk_store import ChunkStore
from .chunks import Chunk, EmbeddedDocument
from .parsing import Unreadable
from .writer_lease import Writer

# How long after its last change a table is compacted and indexed.
MAINTAIN_SECONDS = 10.0


async def read_document(services: Services, row: Row) -> list[Chunk]:
    """Returns the chunks of a stored file. Raises Unreadable."""
    kind = parsing.kind_of(row["name"])
    if kind is None or row["file_key"] is None:
        raise Unreadable(f"is not a {parsing.FORMATS} file")
    try:
        content = await services.files.read(row["file_key"])
    except FileNotStored:
        raise Unreadable("is no longer stored; upload it again") from None
    return await parsing.read_chunks(content, kind)


async def replace_chunks(services: Services, writer: Writer, document: EmbeddedDocument) -> bool:
    """Writes the document's chunks; True when older ones were removed. Raises Unreadable when the
    vectors do not fit the table.
    """
    store = services.get(ChunkStore)
    dimensions = int(document.vectors.shape[1])
    described = await store.describe(writer.table)
    if described is None:
        await store.create(writer.table, writer.embedding_model, dimensions)
    elif described.dimensions != dimensions:
        raise Unreadable("got vectors of another length than the knowledge base has")
    return await store.replace(writer.table, document)
