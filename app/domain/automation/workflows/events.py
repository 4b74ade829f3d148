from typing import Annotated, Any

from app.domain.area import Event, example


class _WorkflowEvent(Event):
    workflow_id: Annotated[str, example("wfl_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Orders")]


class WorkflowCreated(_WorkflowEvent):
    """A workflow was created."""

    type = "workflow.created"


class WorkflowUpdated(_WorkflowEvent):
    """A workflow was changed; a change of nodes or edges is a version."""

    type = "workflow.updated"

    version: Annotated[int, example(3)]
    changed: Annotated[list[str], example(["nodes"])]


class WorkflowPublished(_WorkflowEvent):
    """A version of a workflow was published: triggers start it."""

    type = "workflow.published"

    version: Annotated[int, example(3)]


class WorkflowDeleted(_WorkflowEvent):
    """A workflow was deleted, with its executions."""

    type = "workflow.deleted"


class _ExecutionEvent(Event):
    execution_id: Annotated[str, example("wfx_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    workflow_id: Annotated[str, example("wfl_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    workflow_name: Annotated[str, example("Orders")]
    version: Annotated[int, example(3)]
    trigger: Annotated[str, example("manual")]
    started_by: Annotated[str | None, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]


class ExecutionStarted(_ExecutionEvent):
    """An execution of a workflow was started, or continued by a retry."""

    type = "workflow.execution.started"


class ExecutionCompleted(_ExecutionEvent):
    """An execution of a workflow was completed; `output` is null when it is large."""

    type = "workflow.execution.completed"

    output: Annotated[Any, example({"total": 3})]


class ExecutionFailed(_ExecutionEvent):
    """An execution of a workflow failed, at a node."""

    type = "workflow.execution.failed"

    owner_id: Annotated[str | None, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    error_code: Annotated[str, example("timeout")]
    error: Annotated[str, example("took more than 600 s")]
    node_id: Annotated[str | None, example("ask_agent")]


class ExecutionCancelled(_ExecutionEvent):
    """An execution of a workflow was cancelled."""

    type = "workflow.execution.cancelled"


class NodeCompleted(Event):
    """A node of an execution was completed."""

    type = "workflow.execution.node_completed"

    execution_id: Annotated[str, example("wfx_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    workflow_id: Annotated[str, example("wfl_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    node_id: Annotated[str, example("ask_agent")]
    node_type: Annotated[str, example("agent")]
    attempt: Annotated[int, example(1)]
