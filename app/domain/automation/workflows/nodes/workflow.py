from typing import Any, ClassVar

import msgspec

from app.domain.automation.workflows import starting
from app.domain.automation.workflows.errors import WorkflowDepthExceeded

from .protocol import Id, Kind, NodeCall, NodeType, Outcome, Wait

_MAX_CALL_DEPTH = 5


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
    references: ClassVar[dict[str, Kind]] = {"workflow_id": "workflow"}
    permission: ClassVar[str | None] = "workflows:execute"
    has_timeout: ClassVar[bool] = True

    async def run(self, call: NodeCall, config: WorkflowConfig) -> Outcome:
        if call.depth + 1 > _MAX_CALL_DEPTH:
            raise WorkflowDepthExceeded(f"Workflows call each other at most {_MAX_CALL_DEPTH} deep")
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
        return Wait(execution_id)

    async def stop(self, call: NodeCall, ref_id: str) -> None:
        await starting.cancel(call.tx, call.services, call.tenant_id, ref_id)
