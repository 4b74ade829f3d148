"""Filters, sorting and search, with and without indexes, against the same in Python."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from app.domain.data.tables import rows, scan_limit, service
from app.kit.errors import Invalid
from app.services import Services
from tests.assertions import refused
from tests.data.tables.api import add_rows, create_table, list_rows, list_values, rows_path
from tests.lengths import IS_LONG
from tests.world import Client

_LONG = "x" * 250
_TEXTS = ["", "a", "A", "b", "Ä", "ab", "a%", "a_", _LONG, _LONG + "1", _LONG[:200], None]
_OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: value == other,
    "ne": lambda value, other: value != other,
    "gt": lambda value, other: value is not None and _comparable(value) > _comparable(other),
    "gte": lambda value, other: value is not None and _comparable(value) >= _comparable(other),
    "lt": lambda value, other: value is not None and _comparable(value) < _comparable(other),
    "lte": lambda value, other: value is not None and _comparable(value) <= _comparable(other),
}
_TYPES: dict[str, list[Any]] = {
    "text": _TEXTS,
    "number": [-1.5, 0, 1, 1.5, 1e300, -1e300, None],
    "integer": [-(2**53) + 1, -1, 0, 7, 2**53 - 1, None],
    "date": ["0001-01-01", "1969-12-31", "1970-01-01", "2026-02-28", "9999-12-31", None],
    "datetime": ["0001-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.001Z", None],
}


def _order(value: Any) -> tuple[bool, Any]:
    return (value is None, "" if value is None else _comparable(value))


def _comparable(value: Any) -> Any:
    """Milliseconds come after the same second without them."""
    return value.removesuffix("Z") if isinstance(value, str) else value


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, int | float) else str(value)


async def test_filters_and_orders_equal_those_in_python(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for indexed in [True, False]:
        with subtests.test(indexed=indexed):
            rng = random.Random(7)
            columns = [{"name": kind, "type": kind, "indexed": indexed} for kind in _TYPES]
            table = await create_table(developer, columns)
            assert {column["indexed"] for column in table["columns"]} == {indexed}
            new_rows = [
                {kind: rng.choice(options) for kind, options in _TYPES.items()} for _ in range(60)
            ]
            stored = [row["values"] for row in await add_rows(developer, table, *new_rows)]
            for kind, options in _TYPES.items():
                values = [row[kind] for row in stored]
                query: dict[str, Any] = {"per_page": 100}
                with subtests.test(kind, op="sort"):
                    # Only the first 200 characters of a text count.
                    cut = [value[:200] if kind == "text" and value else value for value in values]
                    ordered = sorted(cut, key=_order)
                    for sort, expected in ((kind, ordered), (f"-{kind}", ordered[::-1])):
                        listed = await list_values(developer, table, kind, sort=sort, **query)
                        assert [v[:200] if kind == "text" and v else v for v in listed] == expected
                others = [option for option in options if option not in {None, ""}]
                # The comparisons are the same without an index.
                for other in others if indexed or IS_LONG else others[:2]:
                    for op, compare in _OPERATIONS.items():
                        with subtests.test(kind, op=op, other=other):
                            params = {f"filter[{kind}][{op}]": _text(other), **query}
                            listed = await list_values(developer, table, kind, **params)
                            assert listed == [v for v in reversed(values) if compare(v, other)]
                for is_null in (True, False):
                    name = f"filter[{kind}][is_null]"
                    params = {name: str(is_null).lower(), **query}
                    listed = await list_values(developer, table, kind, **params)
                    assert listed == [v for v in reversed(values) if (v is None) is is_null]


async def test_several_filters_and_a_sort_of_another_column(developer: Client) -> None:
    columns: list[dict[str, Any]] = [
        {"name": "status", "type": "select", "options": ["new", "won", "lost"]},
        {"name": "n", "type": "integer"},
        {"name": "plain", "type": "integer", "indexed": False},
        {"name": "active", "type": "boolean"},
    ]
    table = await create_table(developer, columns)
    new_rows = [
        {"status": ("new", "won", "lost")[n % 3], "n": n, "plain": -n, "active": n % 2 == 0}
        for n in range(30)
    ]
    await add_rows(developer, table, *new_rows)
    for params, expected in (
        ({"filter[status]": "won", "sort": "-n"}, [28, 25, 22, 19, 16, 13, 10, 7, 4, 1]),
        ({"filter[status][in]": "won,lost", "filter[n][lt]": "6", "sort": "n"}, [1, 2, 4, 5]),
        ({"filter[n][gte]": "27", "sort": "plain"}, [29, 28, 27]),
        ({"filter[n][gt]": "3", "filter[n][lte]": "5"}, [5, 4]),
        ({"filter[plain][gte]": "-2", "sort": "-status"}, [1, 0, 2]),
        ({"filter[active]": "true", "filter[n][lt]": "5"}, [4, 2, 0]),
        ({"filter[status][contains]": "OS", "filter[n][lt]": "6"}, [5, 2]),
        ({"filter[status][eq]": "gone"}, []),
        ({"search": "LOS", "filter[n][lt]": "6"}, [5, 2]),
        ({"sort": "n", "page": 3, "per_page": 7}, [14, 15, 16, 17, 18, 19, 20]),
        ({"filter[status]": "won", "sort": "-n", "page": 2, "per_page": 4}, [16, 13, 10, 7]),
        ({"filter[status]": "won", "sort": "-n", "page": 9}, []),
    ):
        assert await list_values(developer, table, "n", **params) == expected, params
    body = await list_rows(developer, table, **{"filter[status]": "won", "sort": "-n", "page": 9})
    assert body["pagination"]["total"] == 10


async def test_rows_are_sorted_by_a_column_with_the_longest_name(developer: Client) -> None:
    name = "n" * 64
    table = await create_table(developer, [{"name": name, "type": "integer"}])
    await add_rows(developer, table, {name: 1}, {name: 3}, {name: 2})
    assert await list_values(developer, table, name, sort=f"-{name}") == [3, 2, 1]


async def test_a_list_that_scans_for_too_long_is_refused(
    developer: Client,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    columns = [{"name": "n", "type": "integer"}, {"name": "text", "type": "text"}]
    plain = {"name": "plain", "type": "integer", "indexed": False}
    table = await create_table(developer, [*columns, plain])
    await add_rows(developer, table, {"n": 1, "text": "a", "plain": 1})
    monkeypatch.setattr(scan_limit, "SCAN_SECONDS", 0.0)
    for params in (
        {"search": "a"},
        {"filter[text][contains]": "a"},
        {"filter[n][ne]": "2"},
        {"filter[plain]": "1"},
        {"sort": "plain"},
        {"filter[n][gt]": "0"},
        {"search": "a", "page": "5000", "per_page": "100"},
    ):
        with subtests.test(params=params):
            answer = await developer.get(rows_path(table), params=params)
            assert "index" in refused(answer, 422, "validation_error")["details"]["filter"]
    for params in ({}, {"filter[n]": "1"}, {"sort": "n"}, {"filter[n][gt]": "0", "sort": "n"}):
        assert await list_values(developer, table, "n", **params) == [1]
    tenant_id = developer.tenant_id
    async with services.db.tx(tenant_id) as tx:
        with pytest.raises(Invalid):
            await service.query_rows(tx, tenant_id, table["id"], {"plain": 1}, sort=None, limit=5)
        await service.insert_row(tx, tenant_id, table["id"], {"n": 2})
    assert await list_values(developer, table, "n", sort="n") == [1, 2]


async def test_a_large_table_is_sorted_by_indexed_columns_only(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_SORTED_ROWS", 2)
    plain = {"name": "plain", "type": "integer", "indexed": False}
    table = await create_table(developer, [{"name": "n", "type": "integer"}, plain])
    await add_rows(developer, table, *({"n": n, "plain": -n} for n in range(3)))
    answer = await developer.get(rows_path(table), params={"sort": "plain"})
    assert "indexed" in refused(answer, 422, "validation_error")["details"]["sort"]
    params = {"sort": "plain", "filter[n][gte]": "1"}
    assert await list_values(developer, table, "n", **params) == [2, 1]


async def test_a_wrong_filter_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    columns = [
        {"name": "n", "type": "integer"},
        {"name": "extra", "type": "json"},
        {"name": "text", "type": "text"},
    ]
    table = await create_table(developer, columns)
    for params in (
        {"filter[none][eq]": "1"},
        {"filter[n][like]": "1"},
        {"filter[n][eq]": "x"},
        {"filter[n][eq]": ""},
        {"filter[n][contains]": "1"},
        {"filter[n][is_null]": "maybe"},
        {"filter[n": "1"},
        {"filter[c1' OR 1=1 --][eq]": "1"},
        {"filter[extra][eq]": "1"},
        {"filter[text][eq]": "x" * 1001},
        {"filter[text][in]": "x," * 101},
        {"sort": "none"},
        {"sort": "extra"},
        {f"filter[n{number}]": "1" for number in range(21)},
    ):
        with subtests.test(params=params):
            answer = await developer.get(rows_path(table), params=params)
            refused(answer, 422, "validation_error")


async def test_a_refused_filter_names_the_limit_or_the_operators(
    developer: Client, subtests: pytest.Subtests
) -> None:
    columns = [{"name": "n", "type": "integer"}, {"name": "extra", "type": "json"}]
    table = await create_table(developer, columns)
    for params, message in (
        ([(f"filter[n{n}]", "1") for n in range(21)], "there may be at most 20 filters"),
        (
            [("filter[n][in]", "1") for _ in range(101)],
            "there may be at most 100 values in all filters",
        ),
        (
            [("filter[extra][eq]", "1")],
            "a column of the type json takes only these operators: is_null",
        ),
    ):
        with subtests.test(message=message):
            answer = await developer.http.get(rows_path(table), params=tuple(params))
            details = refused(answer, 422, "validation_error")["details"]
            assert list(details.values()) == [message]
