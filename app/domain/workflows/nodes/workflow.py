from typing import Any, ClassVar

import msgspec

from app.domain.workflows import queries, starting
from app.domain.workflows.errors import WorkflowDepthExceeded
from app.domain.workflows.nodes.protocol import Id, NodeCall, NodeType, Outcome, Waits
from app.kit.errors import Problem
from db.session import Tx

MAX_DEPTH = 5


class WorkflowConfig(msgspec.Struct, forbid_unknown_fields=True):
    workflow_id: Id
    input: dict[str, Any] = {}


class WorkflowNode(NodeType[WorkflowConfig]):
    name: ClassVar[str] = "workflow"
    description: ClassVar[str] = "Runs another published workflow; its output is the node's"
    config: ClassVar[type[msgspec.Struct]] = WorkflowConfig
    example: ClassVar[dict[str, Any]] = {
        "workflow_id": "wfl_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "input": {"order": "{{ input.order }}"},
    }
    literal: ClassVar[frozenset[str]] = frozenset({"workflow_id"})
    permission: ClassVar[str | None] = "workflows:execute"

    async def find_unknown(self, tx: Tx, tenant_id: str, config: dict[str, Any]) -> Problem | None:
        if await queries.exists(tx, tenant_id, config["workflow_id"]):
            return None
        return "workflow_id", "there is no such workflow"

    async def run(self, call: NodeCall, config: WorkflowConfig) -> Outcome:
        if call.depth + 1 > MAX_DEPTH:
            raise WorkflowDepthExceeded(f"Workflows call each other at most {MAX_DEPTH} deep")
        execution_id = await starting.accept(
            call.tx,
            call.services,
            starting.NewExecution(
                tenant_id=call.tenant_id,
                workflow_id=config.workflow_id,
                input=config.input,
                trigger_type="workflow",
                trigger_id=call.execution_id,
                caller_id=call.caller_id,
                depth=call.depth + 1,
                dedupe_key=call.caller_id,
            ),
        )
        return Waits(execution_id)

    async def stop(self, call: NodeCall, ref_id: str) -> None:
        await starting.cancel(call.tx, call.services, call.tenant_id, ref_id)
