"""Requests on data tables."""

from typing import Any

from tests.world import Client

TABLES = "/api/v1/data-tables"
COLUMNS: list[dict[str, Any]] = [
    {"name": "email", "type": "text", "required": True, "unique": True},
    {"name": "score", "type": "number"},
    {"name": "visits", "type": "integer"},
    {"name": "active", "type": "boolean"},
    {"name": "born", "type": "date"},
    {"name": "seen", "type": "datetime"},
    {"name": "status", "type": "select", "options": ["new", "won", "lost"], "default": "new"},
    {"name": "extra", "type": "json"},
    {"name": "photo", "type": "file"},
]
ANN: dict[str, Any] = {
    "email": "ann@example.com",
    "score": 7.5,
    "visits": 3,
    "active": True,
    "born": "1990-02-28",
    "seen": "2026-01-31T09:30:00Z",
    "status": "won",
    "extra": {"tags": ["a", "b"]},
    "photo": None,
}


async def create_table(
    client: Client, columns: list[dict[str, Any]] | None = None, name: str = "Leads"
) -> dict[str, Any]:
    body = {"name": name, "columns": COLUMNS if columns is None else columns}
    answer = await client.post(TABLES, body)
    assert answer.status_code == 201, answer.text
    table: dict[str, Any] = answer.json()["data"]
    return table


def rows_path(table: dict[str, Any]) -> str:
    return f"{TABLES}/{table['id']}/rows"


async def add_rows(
    client: Client, table: dict[str, Any], *rows: dict[str, Any]
) -> list[dict[str, Any]]:
    answer = await client.post(rows_path(table), {"rows": list(rows)})
    assert answer.status_code == 201, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def list_rows(client: Client, table: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = await client.get(rows_path(table), params=params)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def list_values(
    client: Client, table: dict[str, Any], column: str, **params: Any
) -> list[Any]:
    """Returns the values of one column of the listed rows."""
    return [row["values"][column] for row in (await list_rows(client, table, **params))["data"]]
