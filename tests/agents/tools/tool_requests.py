"""Requests to /v1/tools, and bodies for them."""

from typing import Any

import msgspec

from app.domain.agents.tools.stored_auth import seal_context
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client

PATH = "/v1/tools"
SUMMARY_KEYS = {
    "id",
    "name",
    "slug",
    "description",
    "category",
    "tool_type",
    "auth_type",
    "is_enabled",
    "usage_count",
    "last_used_at",
    "created_at",
}

VIEW_KEYS = SUMMARY_KEYS | {"input_schema", "output_schema", "updated_at"}
CODE = "def main(input):\n    return input\n"
FUNCTION_CONFIG = {"runtime": "python", "code": CODE}
FUNCTION_TOOL: dict[str, Any] = {
    "name": "Echo",
    "category": "automation",
    "tool_type": "function",
    "config": FUNCTION_CONFIG,
    "auth_type": "none",
}

WEBHOOK_TOOL: dict[str, Any] = {
    "name": "Hook",
    "category": "webhook",
    "tool_type": "webhook",
    "config": {"url": "https://hooks.example.com/in"},
    "auth_type": "bearer",
    "auth_config": {"token": "planted-token-0123456789"},
}

NO_TOOL = "tool_00000000000000000000000000"


async def create_tool(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, {**FUNCTION_TOOL, **fields})
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) == {"data"}
    tool: dict[str, Any] = answer.json()["data"]
    return tool


async def get_tool(caller: Client, tool_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/{tool_id}")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    tool: dict[str, Any] = answer.json()["data"]
    return tool


async def update_tool(caller: Client, tool_id: str, change: dict[str, Any]) -> dict[str, Any]:
    answer = await caller.put(f"{PATH}/{tool_id}", change)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    tool: dict[str, Any] = answer.json()["data"]
    return tool


async def list_tools(caller: Client, **params: Any) -> list[dict[str, Any]]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "pagination"}
    tools: list[dict[str, Any]] = answer.json()["data"]
    return tools


async def list_tool_events(caller: Client) -> list[tuple[str, dict[str, Any]]]:
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    events = [(entry["type"], entry["data"]) for entry in reversed(answer.json()["data"])]
    return [
        (event_type, data) for event_type, data in events if event_type.startswith("system.tool.")
    ]


async def load_auth_config(services: Services, tool_id: str) -> bytes | None:
    """Returns the stored auth of a tool, opened."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT tenant_id, auth_config FROM tools WHERE id = $1"
        row = await (await tx.raw()).fetchrow(sql, tool_id)
    if row["auth_config"] is None:
        return None
    content = services.keyring.open(row["auth_config"], seal_context(row["tenant_id"], tool_id))
    return msgspec.json.encode(msgspec.json.decode(content)["auth"])


INVALID_FIELDS: list[tuple[str, object]] = [
    ("name", ""),
    ("name", " "),
    ("name", "x" * 101),
    ("name", "two\nlines"),
    ("name", None),
    ("slug", ""),
    ("slug", "Upper"),
    ("slug", "two--dashes"),
    ("slug", "-leading"),
    ("slug", "trailing-"),
    ("slug", "a b"),
    ("slug", "ä"),
    ("slug", "line\n"),
    ("slug", "x" * 101),
    ("description", "x" * 2001),
    ("description", None),
    ("category", "other"),
    ("category", None),
    ("tool_type", "python"),
    ("tool_type", None),
    ("auth_type", "digest"),
    ("auth_type", None),
    ("config", []),
    ("config", "x"),
    ("auth_config", "x"),
    ("input_schema", "x"),
    ("input_schema", True),
    ("output_schema", []),
    ("is_enabled", "yes"),
    ("is_enabled", None),
]


async def create_credential(caller: Client, type_: str = "bearer_token") -> str:
    secrets = {"token": "t-0123"} if type_ == "bearer_token" else {"api_key": "k-0123"}
    body = {"name": "C", "type": type_, "secrets": secrets}
    answer = await caller.post("/v1/credentials", body)
    assert answer.status_code == 201, answer.text
    credential_id: str = answer.json()["id"]
    return credential_id
