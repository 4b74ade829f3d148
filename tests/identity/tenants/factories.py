"""Tenants created by requests."""

from typing import Any

from tests.world import Client

PATH = "/api/v1/tenants"
KEYS = {"id", "name", "plan", "limits", "created_at"}


async def create_tenant(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(PATH, {"name": "Acme", **fields})
    assert answer.status_code == 201, answer.text
    tenant: dict[str, Any] = answer.json()
    return tenant
