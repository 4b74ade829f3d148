"""Creates service keys and the clients that use them."""

from typing import Any

from tests.world import Client

KEYS_PATH = "/api/v1/service-keys"


async def create_key(admin: Client, role: str = "agent_developer", **more: Any) -> dict[str, Any]:
    answer = await admin.post(KEYS_PATH, {"name": "Import", "role": role, **more})
    assert answer.status_code == 201, answer.text
    key: dict[str, Any] = answer.json()
    return key


def as_program(admin: Client, key: dict[str, Any]) -> Client:
    """A client that sends the key."""
    return Client(admin.app, key["key"], user_id=key["id"], tenant_id=admin.tenant_id)


async def create_program(admin: Client, role: str = "agent_developer", **more: Any) -> Client:
    return as_program(admin, await create_key(admin, role, **more))
