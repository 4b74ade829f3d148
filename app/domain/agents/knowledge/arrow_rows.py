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
            ("heading", pa.string()),
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
        pa.array([chunk.heading for chunk in chunks], pa.string()),
        pa.FixedSizeListArray.from_arrays(pa.array(document.vectors.ravel()), dimensions),
    ]
    return pa.table(columns, schema=build_schema(dimensions))


def replace_vectors(batch: Any, vectors: Any) -> Any:
    """Returns the rows of a batch, with these vectors unless they are None. A column that the table
    of the batch lacks is empty.
    """
    import pyarrow as pa  # noqa: PLC0415  # with LanceDB

    rows = pa.Table.from_batches([batch])
    fields = {name: rows.column(name) for name in rows.column_names}
    dimensions = batch.schema.field("vector").type.list_size
    if vectors is not None:
        dimensions = vectors.shape[1]
        column = pa.array(vectors.ravel())
        fields["vector"] = pa.FixedSizeListArray.from_arrays(column, dimensions)
    schema = build_schema(dimensions)
    empty = {field.name: pa.nulls(rows.num_rows, field.type) for field in schema}
    return pa.table([(empty | fields)[name] for name in schema.names], schema=schema)


def find_missing(schema: Any) -> list[Any]:
    """Returns the fields that a table of an earlier release lacks."""
    dimensions = schema.field("vector").type.list_size
    return [field for field in build_schema(dimensions) if field.name not in schema.names]
