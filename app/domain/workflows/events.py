from datetime import datetime
from typing import Any, ClassVar

from app.domain.events.event import Event


class WorkflowCreated(Event):
    type: ClassVar[str] = "workflow.created"
    description: ClassVar[str] = "A workflow was created"

    workflow_id: str
    name: str


class WorkflowUpdated(Event):
    type: ClassVar[str] = "workflow.updated"
    description: ClassVar[str] = "A workflow was changed"

    workflow_id: str
    name: str
    changed: list[str]
    version: int


class WorkflowDeleted(Event):
    type: ClassVar[str] = "workflow.deleted"
    description: ClassVar[str] = "A workflow was deleted"

    workflow_id: str
    name: str


class WorkflowPublished(Event):
    type: ClassVar[str] = "workflow.published"
    description: ClassVar[str] = "A workflow was published"

    workflow_id: str
    name: str
    version: int


class ExecutionStarted(Event):
    type: ClassVar[str] = "workflow.execution.started"
    description: ClassVar[str] = "A workflow began to run"

    workflow_id: str
    execution_id: str
    version: int


class ExecutionCompleted(Event):
    type: ClassVar[str] = "workflow.execution.completed"
    description: ClassVar[str] = "A workflow ran to its end"

    workflow_id: str
    execution_id: str
    output: Any
    duration_ms: int


class ExecutionFailed(Event):
    type: ClassVar[str] = "workflow.execution.failed"
    description: ClassVar[str] = "A workflow could not go on"

    workflow_id: str
    execution_id: str
    node_id: str | None
    code: str
    error: str


class NodeCompleted(Event):
    type: ClassVar[str] = "workflow.execution.node_completed"
    description: ClassVar[str] = "One node of a workflow is done"

    workflow_id: str
    execution_id: str
    node_id: str
    node_type: str
    duration_ms: int


class ApprovalRequested(Event):
    type: ClassVar[str] = "approval.requested"
    description: ClassVar[str] = "Somebody is asked to decide"

    approval_id: str
    workflow_execution_id: str
    node_id: str
    title: str
    expires_at: datetime | None


class ApprovalApproved(Event):
    type: ClassVar[str] = "approval.approved"
    description: ClassVar[str] = "A request was approved"

    approval_id: str
    workflow_execution_id: str
    decided_by: str
    comment: str | None


class ApprovalRejected(Event):
    type: ClassVar[str] = "approval.rejected"
    description: ClassVar[str] = "A request was rejected"

    approval_id: str
    workflow_execution_id: str
    decided_by: str
    comment: str | None


class ApprovalTimedOut(Event):
    type: ClassVar[str] = "approval.timeout"
    description: ClassVar[str] = "Nobody decided in time"

    approval_id: str
    workflow_execution_id: str
    outcome: str
