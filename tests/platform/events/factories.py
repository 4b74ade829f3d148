"""Creates what tests need to emit an event."""

from typing import Any

from app.kit.ids import new_id
from app.services import Services
from tests.platform.events.database import wait_until_idle
from tests.platform.events.responses import read_json
from tests.world import Client


async def create_agent(client: Client, name: str = "Agent", **headers: str) -> str:
    """Emits `agent.created`; returns the agent's id."""
    body = {"name": name, "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    response = await client.post("/api/v1/agents", body, headers=headers)
    agent_id: str = read_json(response, 201)["id"]
    return agent_id


async def create_agent_and_wait(services: Services, client: Client, name: str = "Agent") -> str:
    """Also waits for all work that the event causes."""
    agent_id = await create_agent(client, name)
    await wait_until_idle(services, client.tenant_id)
    return agent_id


async def invite_user(client: Client, **headers: str) -> dict[str, Any]:
    """Emits `system.user.invited`; underscores in the names of headers become hyphens."""
    body = {"email": f"{new_id('mail')}@example.com", "role": "viewer"}
    sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await client.post("/users/invite", body, headers=sent_headers)
    invitation: dict[str, Any] = read_json(response, 201)
    return invitation
