"""Rows of a table of chunks, as Arrow has them. The imports are late, because they take long."""

from typing import Any

from .chunks import EmbeddedDocument


def build_schema(dimensions: int) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415  # with LanceDB

    return pa.schema(
        [
            ("document_id", pa.string()),
            ("document_name", pa.string()),
            ("version", pa.int32()),
            ("position", pa.int32()),
            ("text", pa.string()),
            ("page", pa.int32()),
            ("row", pa.int32()),
            ("vector", pa.list_(pa.float32(), dimensions)),
        ]
    )


def build_rows(document: EmbeddedDocument) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # with LanceDB

    count, dimensions = document.vectors.shape
    chunks = document.chunks
    columns = [
        pa.array([document.document_id] * count),
        pa.array([document.document_name] * count),
        pa.array([document.version] * count, pa.int32()),
        pa.array(range(count), pa.int32()),
        pa.array([chunk.text for chunk in chunks]),
        pa.array([chunk.page for chunk in chunks], pa.int32()),
        pa.array([chunk.row for chunk in chunks], pa.int32()),
        pa.FixedSizeListArray.from_arrays(pa.array(document.vectors.ravel()), dimensions),
    ]
    return pa.table(columns, schema=build_schema(dimensions))


def replace_vectors(batch: Any, vectors: Any) -> Any:
    """Returns the rows of a batch, with these vectors unless they are None."""
    import pyarrow as pa  # noqa: PLC0415  # with LanceDB

    rows = pa.Table.from_batches([batch])
    if vectors is None:
        return rows
    dimensions = vectors.shape[1]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimensions)
    fields = {name: rows.column(name) for name in rows.column_names} | {"vector": column}
    schema = build_schema(dimensions)
    return pa.table([fields[name] for name in schema.names], schema=schema)
