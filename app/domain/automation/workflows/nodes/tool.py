from typing import Any, ClassVar

import msgspec

from app.domain.agents.tools import api as tools
from db.session import Tx

from .protocol import Id, Kind, NodeCall, NodeType, Outcome, Wait


class ToolConfig(msgspec.Struct, forbid_unknown_fields=True):
    tool_id: Id
    input: dict[str, Any] = {}


class ToolNode(NodeType[ToolConfig]):
    name: ClassVar[str] = "tool"
    description: ClassVar[str] = "Runs a tool; its output is the node's"
    config: ClassVar[type[msgspec.Struct]] = ToolConfig
    example: ClassVar[dict[str, Any]] = {
        "tool_id": "tool_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "input": {"city": "{{ input.city }}"},
    }
    references: ClassVar[dict[str, Kind]] = {"tool_id": "tool"}
    permission: ClassVar[str | None] = "tools:execute"
    timeout_seconds: ClassVar[float | None] = 600.0

    async def lock(self, tx: Tx, tenant_id: str, config: ToolConfig) -> None:
        await tools.delay_deletion(tx, tenant_id, config.tool_id)

    async def run(self, call: NodeCall, config: ToolConfig) -> Outcome:
        execution_id = await tools.accept_run(
            call.tx,
            call.services,
            call.tenant_id,
            config.tool_id,
            config.input,
            caller_id=call.caller_id,
        )
        return Wait(execution_id, is_running=True)

    async def stop(self, call: NodeCall, ref_id: str) -> None:
        await tools.cancel_run(call.tx, call.services, call.tenant_id, ref_id)
