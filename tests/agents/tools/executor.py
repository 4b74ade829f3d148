"""Runs tools on their executors, as a worker does, without the API and the ledger."""

from typing import Any

import msgspec

from app.domain.agents.tools import auth_configs, configs, stored_auth
from app.domain.agents.tools.execute import execute_tool
from app.kit.ids import new_id
from app.services import Services
from tests.agents.tools.factories import ToolCaller


class ToolExecutor(ToolCaller):
    """Keeps its tools in memory. They have the rows that the ledger would give to a worker."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.tenant_id = new_id("ten")
        self._rows: dict[str, dict[str, Any]] = {}

    async def create(self, tool_type: str, config: dict[str, Any], **fields: Any) -> str:
        tool_id, auth_type = new_id("tool"), fields.get("auth_type", "none")
        guard, allow_http = self.services.egress.guard, auth_type == "none"
        configs.validate(tool_type, config, guard, "config", allow_http=allow_http)
        schema = fields.get("output_schema")
        self._rows[tool_id] = {
            "tenant_id": self.tenant_id,
            "tool_id": tool_id,
            "tool_type": tool_type,
            "config": msgspec.json.encode(config),
            "auth_type": auth_type,
            "auth_config": None,
            "agent_id": None,
            "previous_status": "pending",
            "output_schema": None if schema is None else msgspec.json.encode(schema),
        }
        if fields.get("auth_config"):
            self._seal_auth(self._rows[tool_id], config, fields["auth_config"])
        return tool_id

    def _seal_auth(self, row: dict[str, Any], config: dict[str, Any], auth: dict[str, Any]) -> None:
        guard, tool_type = self.services.egress.guard, row["tool_type"]
        content = auth_configs.encode(
            auth_configs.validate(row["auth_type"], auth, guard, "auth_config"),
            stored_auth.auth_destination(
                tool_type, stored_auth.parse_config(tool_type, config), guard
            ),
        )
        context = stored_auth.seal_context(self.tenant_id, row["tool_id"])
        row["auth_config"] = self.services.keyring.seal(content, context)

    async def run(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        assert not fields, f"an executor does not know {fields}"
        row = {**self._rows[tool_id], "input": msgspec.json.encode(arguments or {})}
        outcome = await execute_tool(self.services, row)
        data = {
            "status": outcome.status,
            "output": None if outcome.output is None else msgspec.json.decode(outcome.output),
            "execution_time_ms": outcome.milliseconds,
        }
        code, message = outcome.error
        return data if code is None else {**data, "error": {"code": code, "message": message}}

    async def get_stored_output(self, tool_id: str, data: dict[str, Any]) -> Any:
        return data["output"]
