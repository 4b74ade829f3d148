"""The search for the nearest vectors of a table, and its index."""

import math
from typing import Any, Final

from . import lance

# From this size on an index serves the search for vectors.
MIN_INDEXED_CHUNKS: Final = 20_000
MAX_INDEX_PARTS: Final = 8
# A search reads the whole index, since vectors of texts are hardly clustered. The index has a bit
# for each number of a vector, so the best rows, this many times the limit, are compared exactly.
REFINE_FACTOR = 5
_MIN_REFINE_FACTOR = 2
_ALL_PARTITIONS = 100_000
# The index of bits takes vectors of these lengths only.
_BITS_PER_BYTE = 8


async def create(table: Any) -> None:
    """Creates the index once the table is large enough for it. Later rows are added as further
    parts, each of which a search reads: with many parts the index is created again.
    """
    row_count = await table.count_rows()
    parts = [
        index.num_segments for index in await table.list_indices() if "vector" in index.columns
    ]
    if row_count < MIN_INDEXED_CHUNKS or (parts and max(parts) <= MAX_INDEX_PARTS):
        return
    dimensions = (await table.schema()).field("vector").type.list_size
    name = "IvfFlat" if dimensions % _BITS_PER_BYTE else "IvfRq"
    # The square root would be usual. Fewer are trained faster, and all of them are read anyway.
    partitions = max(1, math.isqrt(row_count) // 4)
    config = lance.index(name, distance_type="cosine", num_partitions=partitions)
    await table.create_index("vector", config=config)


def nearest(table: Any, vector: list[float], surplus: float = 1.0) -> Any:
    """Where more rows are read than are wanted, by the factor `surplus`, hardly more of them are
    compared exactly.
    """
    query = table.query().nearest_to(vector).distance_type("cosine")
    factor = max(_MIN_REFINE_FACTOR, math.ceil(REFINE_FACTOR / surplus))
    return query.nprobes(_ALL_PARTITIONS).refine_factor(factor)
