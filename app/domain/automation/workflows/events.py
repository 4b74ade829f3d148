from typing import Any, ClassVar

from app.domain.area import Event


class _WorkflowEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "workflow_id": "wfl_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    workflow_id: str
    name: str


class WorkflowCreated(_WorkflowEvent):
    type: ClassVar[str] = "workflow.created"
    description: ClassVar[str] = "A workflow was created"


class WorkflowUpdated(_WorkflowEvent):
    type: ClassVar[str] = "workflow.updated"
    description: ClassVar[str] = "A workflow was changed; a change of nodes or edges is a version"
    example: ClassVar[dict[str, Any]] = {
        **_WorkflowEvent.example,
        "version": 3,
        "changed": ["nodes"],
    }

    version: int
    changed: list[str]


class WorkflowPublished(_WorkflowEvent):
    type: ClassVar[str] = "workflow.published"
    description: ClassVar[str] = "A version of a workflow was published: triggers start it"
    example: ClassVar[dict[str, Any]] = {**_WorkflowEvent.example, "version": 3}

    version: int


class WorkflowDeleted(_WorkflowEvent):
    type: ClassVar[str] = "workflow.deleted"
    description: ClassVar[str] = "A workflow was deleted, with its executions"


class _ExecutionEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "execution_id": "wfx_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "workflow_id": "wfl_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "workflow_name": "Orders",
        "version": 3,
        "trigger": "manual",
        "started_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    execution_id: str
    workflow_id: str
    workflow_name: str
    version: int
    trigger: str
    started_by: str | None


class ExecutionStarted(_ExecutionEvent):
    type: ClassVar[str] = "workflow.execution.started"
    description: ClassVar[str] = "An execution of a workflow was started, or continued by a retry"


class ExecutionCompleted(_ExecutionEvent):
    type: ClassVar[str] = "workflow.execution.completed"
    description: ClassVar[str] = (
        "An execution of a workflow was completed; `output` is null when it is large"
    )
    example: ClassVar[dict[str, Any]] = {**_ExecutionEvent.example, "output": {"total": 3}}

    output: Any


class ExecutionFailed(_ExecutionEvent):
    type: ClassVar[str] = "workflow.execution.failed"
    description: ClassVar[str] = "An execution of a workflow failed, at a node"
    example: ClassVar[dict[str, Any]] = {
        **_ExecutionEvent.example,
        "owner_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "error_code": "timeout",
        "error": "took more than 600 s",
        "node_id": "ask_agent",
    }

    owner_id: str | None
    error_code: str
    error: str
    node_id: str | None


class ExecutionCancelled(_ExecutionEvent):
    type: ClassVar[str] = "workflow.execution.cancelled"
    description: ClassVar[str] = "An execution of a workflow was cancelled"


class NodeCompleted(Event):
    type: ClassVar[str] = "workflow.execution.node_completed"
    description: ClassVar[str] = "A node of an execution was completed"
    example: ClassVar[dict[str, Any]] = {
        "execution_id": "wfx_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "workflow_id": "wfl_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "node_id": "ask_agent",
        "node_type": "agent",
        "attempt": 1,
    }

    execution_id: str
    workflow_id: str
    node_id: str
    node_type: str
    attempt: int
