"""What most tests of running tools do: make one over HTTP, run it, and look at what came of it."""

from typing import Any

from tests.world import Client, World


class Bench:
    """One tenant's administrator, who makes tools and runs them."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def create(self, tool_type: str, config: dict[str, Any], **more: Any) -> str:
        body = {
            "name": "Tool",
            "category": "custom",
            "tool_type": tool_type,
            "config": config,
            "auth_type": "none",
            **more,
        }
        answer = await self.client.post("/v1/tools", body)
        assert answer.status_code == 201, answer.text
        tool_id: str = answer.json()["data"]["id"]
        return tool_id

    async def run(
        self, tool_id: str, given: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        answer = await self.client.post(
            f"/v1/tools/{tool_id}/execute", {"input": given or {}, **more}, timeout=60
        )
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data

    async def output(
        self, tool_id: str, given: dict[str, Any] | None = None, **more: Any
    ) -> Any:  # whatever a tool gives
        data = await self.run(tool_id, given, **more)
        assert data["status"] == "completed", data
        return data["output"]

    async def failure(
        self, tool_id: str, given: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """The error, with what was stored as output in spite of it."""
        data = await self.run(tool_id, given, **more)
        assert data["status"] in {"failed", "timeout"}, data
        path = f"/v1/tools/{tool_id}/executions/{data['execution_id']}"
        stored = (await self.client.get(path)).json()["data"]
        assert stored["status"] == data["status"]
        return {"status": data["status"], "output": stored["output"], **data["error"]}

    async def code(self, tool_id: str, given: dict[str, Any] | None = None, **more: Any) -> str:
        code: str = (await self.failure(tool_id, given, **more))["code"]
        return code

    async def credential(self, type_: str, secrets: dict[str, Any]) -> str:
        body = {"name": "Credential", "type": type_, "secrets": secrets}
        answer = await self.client.post("/v1/credentials", body)
        assert answer.status_code == 201, answer.text
        credential_id: str = answer.json()["id"]
        return credential_id

    async def grant(self, credential_id: str, integration_id: str, type_: str = "tool") -> str:
        """The path of the rule, to take it away again."""
        path = f"/v1/credentials/{credential_id}/access"
        body = {"integration_type": type_, "integration_id": integration_id}
        answer = await self.client.post(path, body)
        assert answer.status_code == 201, answer.text
        return f"{path}/{answer.json()['id']}"

    async def agent(self) -> str:
        body = {"name": "Agent", "primary_model": "local/smollm2", "system_prompt": "Help."}
        answer = await self.client.post("/api/v1/agents", body)
        assert answer.status_code == 201, answer.text
        agent_id: str = answer.json()["id"]
        return agent_id


async def bench_of(world: World) -> Bench:
    return Bench(await world.user("tenant_admin"))
