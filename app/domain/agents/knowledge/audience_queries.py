"""SQL of who may find which documents."""

from collections.abc import Iterable, Iterator
from typing import Any

from app.domain.agents.definition.api import DocumentFilter, trim_labels
from app.kit.texts import as_json
from db import fast
from db.fast import Row
from db.lists import Where
from db.session import Tx

from .reader import Reader

# Until a new file was read, a document has also the groups and the validity of its chunks.
_IS_VALID = (
    "coalesce(greatest(valid_from, chunk_valid_from) <= now(), true) "
    "AND coalesce(least(valid_until, chunk_valid_until) > now(), true)"
)
_IS_OPEN = (
    "visibility = 'public' AND NOT has_internal_chunks "
    "AND (groups = '{}' OR groups && $n::varchar[]) "
    "AND coalesce(chunk_groups = '{}' OR chunk_groups && $n::varchar[], true)"
)
_OF_AGENT = "tenant_id = $1 AND agent_id = $2"
# Each part reads an index of its own.
_LIST_HIDDEN = f"""
SELECT id FROM documents
WHERE {_OF_AGENT} AND $3::varchar[] IS NOT NULL
  AND (visibility = 'internal' OR has_internal_chunks OR groups <> '{{}}' OR chunk_groups <> '{{}}')
  AND NOT ({_IS_OPEN.replace("$n", "$3")})
UNION ALL
SELECT id FROM documents WHERE {_OF_AGENT} AND greatest(valid_from, chunk_valid_from) > now()
UNION ALL
SELECT id FROM documents WHERE {_OF_AGENT} AND least(valid_until, chunk_valid_until) <= now()
LIMIT $4
"""
_SPLIT = """
SELECT is_allowed, count, CASE WHEN 2 * count <= sum(count) OVER () THEN ids END AS ids
FROM (
    SELECT is_allowed, count(*) AS count, string_agg(id, ',') AS ids
    FROM (SELECT id, %s AS is_allowed FROM documents WHERE %s) d
    GROUP BY is_allowed
) s
"""


async def list_hidden(tx: Tx, tenant: str, agent_id: str, reader: Reader, limit: int) -> list[str]:
    """Returns documents that the reader must not find; some may come twice."""
    groups = None if reader.groups is None else list(reader.groups)
    return [row["id"] for row in await fast.rows(tx, tenant, _LIST_HIDDEN, agent_id, groups, limit)]


async def split(
    tx: Tx, tenant: str, agent_id: str, reader: Reader, filters: Iterable[DocumentFilter]
) -> list[Row]:
    """Returns how many documents the reader may find and how many not, and the ids of the smaller
    part, with commas between them.
    """
    where = Where(tenant, "deleted_at IS NULL")
    where.add("agent_id = $n", agent_id)
    conditions = [_IS_VALID]
    if reader.groups is not None:
        conditions.append(_IS_OPEN.replace("$n", where.bind(list(reader.groups))))
    for document_filter in filters:
        conditions += _list_conditions(where, document_filter)
    is_allowed = " AND ".join(f"({condition})" for condition in conditions)
    return await fast.rows(tx, tenant, _SPLIT % (is_allowed, where.sql), *where.args)


def _list_conditions(where: Where, document_filter: DocumentFilter) -> Iterator[str]:
    """None of them is ever NULL."""
    if document_filter.tags:
        yield f"tags && {where.bind(trim_labels(document_filter.tags))}::varchar[]"
    if document_filter.languages:
        languages = where.bind(document_filter.languages)
        yield f"coalesce(coalesce(chosen_language, language) = ANY({languages}), false)"
    # The fields of a document may be large, and are read once for each of these conditions.
    values = {name: value for name, value in document_filter.fields.items() if not _is_list(value)}
    if values:
        yield f"coalesce(fields @> {where.bind(as_json(values))}::jsonb, false)"
    lists = {name: value for name, value in document_filter.fields.items() if _is_list(value)}
    if lists:
        path, variables = where.bind(_build_path(lists)), where.bind(as_json(_number(lists)))
        path_exists = f"jsonb_path_exists(fields, {path}::text::jsonpath, {variables}::jsonb, true)"
        yield f"coalesce({path_exists}, false)"


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _number(lists: dict[str, Any]) -> dict[str, Any]:
    return {f"v{number}": values for number, values in enumerate(lists.values())}


def _build_path(lists: Iterable[str]) -> str:
    """Returns the JSON path of fields of which each has one of the values of its variable."""
    conditions = [f"@.{as_json(name)} == $v{number}[*]" for number, name in enumerate(lists)]
    return f"$ ? ({' && '.join(conditions)})"
