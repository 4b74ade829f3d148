"""A client that creates tools over HTTP, runs them, and reads their outcomes."""

from abc import ABC, abstractmethod
from typing import Any

import httpx

from tests.world import Client, World


class ToolCaller(ABC):
    """Creates and runs tools: over HTTP (ToolClient), or on their executors (ToolExecutor)."""

    @abstractmethod
    async def create(self, tool_type: str, config: dict[str, Any], **fields: Any) -> str:
        """Returns the id of a new tool."""

    @abstractmethod
    async def run(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Returns the outcome, as the API reports it."""

    @abstractmethod
    async def get_stored_output(self, tool_id: str, data: dict[str, Any]) -> Any:
        """Returns the output that is stored for a run, also for one that failed."""

    async def get_output(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> Any:  # any JSON value
        data = await self.run(tool_id, arguments, **fields)
        assert data["status"] == "completed", data
        return data["output"]

    async def get_failure(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Returns the error with the output that is stored with it."""
        data = await self.run(tool_id, arguments, **fields)
        assert data["status"] in {"failed", "timeout"}, data
        output = await self.get_stored_output(tool_id, data)
        return {"status": data["status"], "output": output, **data["error"]}

    async def get_error_code(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> str:
        code: str = (await self.get_failure(tool_id, arguments, **fields))["code"]
        return code


class ToolClient(ToolCaller):
    """The administrator of one tenant, who creates and runs tools over HTTP."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def request_create(
        self, tool_type: str, config: dict[str, Any], **fields: Any
    ) -> httpx.Response:
        body = {
            "name": "Tool",
            "category": "custom",
            "tool_type": tool_type,
            "config": config,
            "auth_type": "none",
            **fields,
        }
        return await self.client.post("/v1/tools", body)

    async def create(self, tool_type: str, config: dict[str, Any], **fields: Any) -> str:
        answer = await self.request_create(tool_type, config, **fields)
        assert answer.status_code == 201, answer.text
        tool_id: str = answer.json()["data"]["id"]
        return tool_id

    async def run(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        answer = await self.client.post(
            f"/v1/tools/{tool_id}/execute", {"input": arguments or {}, **fields}, timeout=60
        )
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data

    async def get_stored_output(self, tool_id: str, data: dict[str, Any]) -> Any:
        path = f"/v1/tools/{tool_id}/executions/{data['execution_id']}"
        record = (await self.client.get(path)).json()["data"]
        assert record["status"] == data["status"]
        return record["output"]

    async def create_credential(self, type_: str, secrets: dict[str, Any]) -> str:
        body = {"name": "Credential", "type": type_, "secrets": secrets}
        answer = await self.client.post("/v1/credentials", body)
        assert answer.status_code == 201, answer.text
        credential_id: str = answer.json()["id"]
        return credential_id

    async def grant_access(
        self, credential_id: str, integration_id: str, type_: str = "tool"
    ) -> str:
        """Returns the path of the access rule, so that a test can delete it."""
        path = f"/v1/credentials/{credential_id}/access"
        body = {"integration_type": type_, "integration_id": integration_id}
        answer = await self.client.post(path, body)
        assert answer.status_code == 201, answer.text
        return f"{path}/{answer.json()['id']}"

    async def create_agent(self) -> str:
        body = {"name": "Agent", "primary_model": "local/smollm2", "system_prompt": "Help."}
        answer = await self.client.post("/api/v1/agents", body)
        assert answer.status_code == 201, answer.text
        agent_id: str = answer.json()["id"]
        return agent_id


async def create_tool_client(world: World) -> ToolClient:
    return ToolClient(await world.user("tenant_admin"))
