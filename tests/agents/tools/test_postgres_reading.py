"""Tools that read from Postgres: parameters, values and limits."""

from typing import Any

import asyncpg
import pytest

from tests.agents.tools.database_tools import create_postgres_tool
from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.tenant_postgres import TenantPostgres
from tests.assertions import refused


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


@pytest.fixture(scope="module")
async def client_reader(
    tool_client: ToolClient, postgres: TenantPostgres, owner: asyncpg.Connection
) -> str:
    """A tool that runs on a worker; `reader` runs on the executor alone."""
    return await create_postgres_tool(tool_client, postgres)


async def test_rows_are_returned_with_columns(tool_client: ToolClient, client_reader: str) -> None:
    arguments = {
        "query": "SELECT id, name AS who FROM people WHERE id <= $1 ORDER BY id",
        "params": [2],
    }
    assert await tool_client.get_output(client_reader, arguments) == {
        "columns": ["id", "who"],
        "rows": [[1, "person 1"], [2, "person 2"]],
        "row_count": 2,
        "truncated": False,
    }


async def test_an_empty_result_has_columns_and_no_rows(tools: ToolExecutor, reader: str) -> None:
    output = await tools.get_output(reader, {"query": "SELECT id FROM people WHERE false"})
    assert (output["columns"], output["rows"], output["row_count"]) == (["id"], [], 0)


PARAMETERS: list[tuple[str, object, object]] = [
    ("int", 7, 7),
    ("int", "7", 7),
    ("bigint", 2**53, 2**53),
    ("bigint", 2**53 + 1, str(2**53 + 1)),
    ("smallint", -1, -1),
    ("float8", 1.5, 1.5),
    ("float8", 2, 2.0),
    ("real", "0.5", 0.5),
    ("numeric", 12.5, 12.5),
    ("numeric", "12.50", 12.5),
    ("numeric", "0.1234567890123456789", "0.1234567890123456789"),
    ("numeric", 10**20, 1e20),
    ("numeric", "NaN", "NaN"),
    ("text", "Zoë's 🌍", "Zoë's 🌍"),
    ("text", 7, "7"),
    ("varchar", True, "True"),
    ("bool", True, True),
    ("date", "2024-02-29", "2024-02-29"),
    ("time", "03:04:05", "03:04:05"),
    ("timestamp", "2024-02-29T03:04:05", "2024-02-29T03:04:05"),
    ("timestamptz", "2024-02-29T03:04:05Z", "2024-02-29T03:04:05+00:00"),
    ("timestamptz", "2024-02-29T03:04:05+02:00", "2024-02-29T01:04:05+00:00"),
    (
        "uuid",
        "6fa459ea-ee8a-3ca4-894e-db77e160355e",
        "6fa459ea-ee8a-3ca4-894e-db77e160355e",
    ),
    ("bytea", "AP8=", "AP8="),
    ("json", {"a": [1, None]}, '{"a":[1,null]}'),
    ("jsonb", [1, "two"], '[1, "two"]'),
    ("jsonb", "text", '"text"'),
    ("inet", "10.0.0.1", "10.0.0.1"),
    ("int[]", [1, None, 3], [1, None, 3]),
    ("int[]", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    ("text[]", ["a", "b,c", ""], ["a", "b,c", ""]),
    ("text[]", [1, "a"], ["1", "a"]),
    ("date[]", ["2024-02-29"], ["2024-02-29"]),
    ("numeric[]", [1, "2.5"], [1, 2.5]),
    ("jsonb[]", [{"a": 1}, None], ['{"a": 1}', None]),
    ("int[]", [], []),
]


async def test_a_parameter_is_converted_to_the_type_of_its_placeholder(
    tools: ToolExecutor, reader: str, subtests: pytest.Subtests
) -> None:
    for type_name, value, expected in PARAMETERS:
        with subtests.test(type_name=type_name, value=value):
            arguments = {"query": f"SELECT $1::{type_name}", "params": [value]}
            assert (await tools.get_output(reader, arguments))["rows"] == [[expected]]


async def test_null_is_null_for_every_type(
    tools: ToolExecutor, reader: str, subtests: pytest.Subtests
) -> None:
    for type_name in (
        "int",
        "text",
        "date",
        "uuid",
        "numeric",
        "bool",
        "json",
        "jsonb",
        "int[]",
        "bytea",
    ):
        with subtests.test(type_name=type_name):
            arguments = {
                "query": f"SELECT $1::{type_name} IS NULL, $1::{type_name}",
                "params": [None],
            }
            assert (await tools.get_output(reader, arguments))["rows"] == [[True, None]]


VALUES_WITHOUT_JSON: list[tuple[str, object]] = [
    ("'NaN'::float8", "nan"),
    ("'-infinity'::float8", "-inf"),
    ("interval '1 day 2 hours'", "1 day, 2:00:00"),
    ("int4range(1, 5)", "[1,5)"),
    ("'empty'::int4range", "empty"),
    ("int4range(NULL, 5)", "(,5)"),
    ("B'101'", "101"),
    ("ROW(1, 'a')", [1, "a"]),
    ("ARRAY[date '2024-02-29']", ["2024-02-29"]),
    ("'a'::name", "a"),
]


async def test_values_without_a_json_type_are_converted(
    tools: ToolExecutor, reader: str, subtests: pytest.Subtests
) -> None:
    for expression, expected in VALUES_WITHOUT_JSON:
        with subtests.test(expression=expression):
            assert (await tools.get_output(reader, {"query": f"SELECT {expression}"}))["rows"] == [
                [expected]
            ]


WRONG_PARAMETERS: list[tuple[str, list[Any]]] = [
    ("SELECT $1::int", ["seven"]),
    ("SELECT $1::int", [2**40]),
    ("SELECT $1::int", [1.5]),
    ("SELECT $1::date", ["29.2.2024"]),
    ("SELECT $1::uuid", ["no uuid"]),
    ("SELECT $1::numeric", ["much"]),
    ("SELECT $1::bytea", ["no base64!"]),
    ("SELECT $1::int[]", [7]),
    ("SELECT $1::int[]", [["a"]]),
    ("SELECT $1::text", [{"a": 1}]),
    ("SELECT $1::int", []),
    ("SELECT $1::int", [1, 2]),
    ("SELECT 1", [1]),
    ("SELECT $2::int", [1]),
]


async def test_a_parameter_of_a_wrong_type_or_number_is_a_runtime_error(
    tools: ToolExecutor, reader: str, subtests: pytest.Subtests
) -> None:
    for query, params in WRONG_PARAMETERS:
        with subtests.test(query=query, params=params):
            assert (
                await tools.get_error_code(reader, {"query": query, "params": params})
                == "runtime_error"
            )


async def test_the_error_of_the_server_is_reported(
    tool_client: ToolClient, client_reader: str, subtests: pytest.Subtests
) -> None:
    for query, message in [
        ("SELECT nothing FROM people", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1 / 0", "division by zero"),
        ("SELECT fails()", "no such order"),
    ]:
        with subtests.test(query=query):
            error = await tool_client.get_failure(client_reader, {"query": query})
            assert error["code"] == "runtime_error"
            assert message in error["message"]


async def test_input_of_another_shape_is_invalid(
    tool_client: ToolClient, client_reader: str, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {},
        {"query": 1},
        {"query": "SELECT 1", "params": {}},
        {"query": None},
    ]
    for arguments in cases:
        with subtests.test(arguments=arguments):
            answer = await tool_client.client.post(
                f"/v1/tools/{client_reader}/execute", {"input": arguments}
            )
            refused(answer, 422, "validation_error")


async def test_rows_beyond_the_limit_are_cut_off(
    tools: ToolExecutor, postgres: TenantPostgres, owner: asyncpg.Connection
) -> None:
    tool = await create_postgres_tool(tools, postgres, max_rows=3)
    output = await tools.get_output(tool, {"query": "SELECT id FROM people ORDER BY id"})
    assert (output["rows"], output["row_count"], output["truncated"]) == ([[1], [2], [3]], 3, True)


async def test_as_many_rows_as_the_limit_are_not_cut_off(
    tools: ToolExecutor, postgres: TenantPostgres, owner: asyncpg.Connection
) -> None:
    tool = await create_postgres_tool(tools, postgres, max_rows=3)
    output = await tools.get_output(tool, {"query": "SELECT id FROM people LIMIT 3"})
    assert (output["row_count"], output["truncated"]) == (3, False)


async def test_an_endless_result_is_cut_off(
    tools: ToolExecutor, postgres: TenantPostgres, owner: asyncpg.Connection
) -> None:
    tool = await create_postgres_tool(tools, postgres, max_rows=5)
    query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    output = await tools.get_output(tool, {"query": query})
    assert (output["row_count"], output["truncated"]) == (5, True)


async def test_rows_of_more_than_a_mebibyte_are_too_large(tools: ToolExecutor, reader: str) -> None:
    arguments = {"query": "SELECT repeat('x', 1100000)"}
    assert await tools.get_error_code(reader, arguments) == "output_too_large"


async def test_a_server_that_sends_gigabytes_is_cut_off(tools: ToolExecutor, reader: str) -> None:
    arguments = {"query": "SELECT repeat('x', 50000000) FROM generate_series(1, 40)"}
    assert await tools.get_error_code(reader, arguments) == "output_too_large"
