"""A client with an agent, which attaches tools to the agent."""

from typing import Any

import httpx

from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.site import Site

CODE = "def main(input):\n    return {'code': 'own'}\n"
OTHER_CODE = "def main(input):\n    return {'code': 'override'}\n"
FUNCTION = {"runtime": "python", "code": CODE}
TOKEN = "planted-own-token"
OVERRIDE_TOKEN = "planted-override-token"


class AgentToolClient(ToolClient):
    """An administrator with an agent."""

    agent_id: str

    @property
    def path(self) -> str:
        return f"/v1/agents/{self.agent_id}/tools"

    async def request_attach(self, tool_id: str, **fields: Any) -> httpx.Response:
        return await self.client.post(self.path, {"tool_id": tool_id, **fields})

    async def attach(self, tool_id: str, **fields: Any) -> dict[str, Any]:
        answer = await self.request_attach(tool_id, **fields)
        assert answer.status_code == 201, answer.text
        assert set(answer.json()) == {"data"}
        attachment: dict[str, Any] = answer.json()["data"]
        return attachment

    async def patch(self, tool_id: str, change: object) -> httpx.Response:
        return await self.client("PATCH", f"{self.path}/{tool_id}", json=change)

    async def list_attachments(self) -> list[dict[str, Any]]:
        answer = await self.client.get(self.path)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == {"data"}
        attachments: list[dict[str, Any]] = answer.json()["data"]
        return attachments

    async def create_function(self, **fields: Any) -> str:
        return await self.create("function", FUNCTION, **fields)

    async def create_webhook(self, site: Site, **fields: Any) -> str:
        """Creates a tool that sends a token to a site."""
        auth = {"auth_type": "bearer", "auth_config": {"token": TOKEN}}
        return await self.create("webhook", {"url": site.url}, **{**auth, **fields})

    async def list_agent_events(self) -> list[dict[str, Any]]:
        params = {"event_type": "agent.updated", "per_page": 100}
        answer = await self.client.get("/api/v1/event-log", params=params)
        events = [entry["data"] for entry in reversed(answer.json()["data"])]
        return [data for data in events if data["agent_id"] == self.agent_id]


def get_other_host_url(site: Site) -> str:
    """Returns the URL of the site with another host name."""
    return site.url.replace("127.0.0.1", "localhost")


async def load_override_auth(services: Services, tool_id: str) -> bytes | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT override_auth FROM agent_tools WHERE tool_id = $1"
        sealed: bytes | None = await (await tx.raw()).fetchval(sql, tool_id)
    return sealed
