"""Rows of a table of chunks, as Arrow has them. The imports are late, because they take long."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .chunks import EmbeddedDocument, title_of
from .terms import list_terms

# That of the columns: 2 has terms. Of tables of format 1 the words of the text are indexed as they
# are, until they are rebuilt.
TABLE_FORMAT: Final = 2
_TERMS = "terms"


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
            (_TERMS, pa.string()),
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
        pa.array(
            [
                _join_terms(document.document_name, chunk.text, document.word_language)
                for chunk in chunks
            ]
        ),
        pa.FixedSizeListArray.from_arrays(pa.array(document.vectors.ravel()), dimensions),
    ]
    return pa.table(columns, schema=build_schema(dimensions))


def _join_terms(document_name: str, text: str, language: str | None) -> str:
    return " ".join(list_terms(f"{title_of(document_name)} {text}", [language]))


def convert(batch: Any, vectors: Any, languages: Mapping[str, str | None]) -> Any:
    """Returns the rows of a batch, with these vectors unless they are None. Terms are made for rows
    of a table that has none, by the languages of the documents; what else it lacks is empty.
    """
    import pyarrow as pa  # noqa: PLC0415  # with LanceDB

    rows = pa.Table.from_batches([batch])
    fields = {name: rows.column(name) for name in rows.column_names}
    dimensions = batch.schema.field("vector").type.list_size
    if vectors is not None:
        dimensions = vectors.shape[1]
        column = pa.array(vectors.ravel())
        fields["vector"] = pa.FixedSizeListArray.from_arrays(column, dimensions)
    if _TERMS not in fields:
        fields[_TERMS] = pa.array(list(_list_terms_of_rows(rows, languages)), pa.string())
    schema = build_schema(dimensions)
    empty = {field.name: pa.nulls(rows.num_rows, field.type) for field in schema}
    return pa.table([(empty | fields)[name] for name in schema.names], schema=schema)


def _list_terms_of_rows(rows: Any, languages: Mapping[str, str | None]) -> Iterator[str]:
    columns = (rows.column(name).to_pylist() for name in ("document_id", "document_name", "text"))
    for document_id, name, text in zip(*columns, strict=True):
        yield _join_terms(name, text, languages.get(document_id))


def find_missing(schema: Any) -> list[Any]:
    """Returns the fields that a table of an earlier release lacks. One without terms gets them
    when it is rebuilt.
    """
    dimensions = schema.field("vector").type.list_size
    known = {*schema.names, _TERMS}
    return [field for field in build_schema(dimensions) if field.name not in known]


def has_terms(schema: Any) -> bool:
    return _TERMS in schema.names
