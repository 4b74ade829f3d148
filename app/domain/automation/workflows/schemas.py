from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.domain.batch import Batch, OperationResult, build_example
from app.kit.validation import ONE_LINE

from .definitions import Edge, Edges, Node, Nodes

Status = Literal["draft", "published"]
ExecutionStatus = Literal["pending", "running", "waiting", "completed", "failed", "cancelled"]
NodeStatus = Literal["pending", "running", "waiting", "completed", "failed", "skipped", "cancelled"]
TriggerType = Literal["manual", "schedule", "event", "webhook", "form", "workflow"]

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Description = Annotated[str, Meta(max_length=2000)]

_ID = "wfl_01k9x3m7e8c0v2q4r6t8w0y2a4"
_EXECUTION_ID = "wfx_01k9x3m7e8c0v2q4r6t8w0y2a4"
_NODES: list[dict[str, Any]] = [
    {"id": "large", "type": "condition", "config": {"expression": "input.amount > 100"}},
    {"id": "greet", "type": "transform", "config": {"output": "Hello {{ input.name }}"}},
    {"id": "refuse", "type": "transform", "config": {"output": "Too large"}},
]
_EDGES: list[dict[str, Any]] = [
    {"from": "large", "to": "refuse", "when": True},
    {"from": "large", "to": "greet", "when": False},
]
_SUMMARY: dict[str, Any] = {
    "id": _ID,
    "name": "Orders",
    "description": "Greets customers",
    "status": "draft",
    "version": 1,
    "published_version": None,
    "trigger": None,
    "next_run_at": None,
    "created_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
}
_WORKFLOW = {**_SUMMARY, "nodes": _NODES, "edges": _EDGES}
_EXECUTION_SUMMARY: dict[str, Any] = {
    "id": _EXECUTION_ID,
    "workflow_id": _ID,
    "version": 1,
    "status": "completed",
    "trigger": {"type": "manual", "id": None},
    "started_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "error": None,
    "correlation_id": "cor_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "created_at": "2026-01-01T12:00:00Z",
    "started_at": "2026-01-01T12:00:00Z",
    "finished_at": "2026-01-01T12:00:01Z",
}


class Schedule(msgspec.Struct, forbid_unknown_fields=True):
    """Five fields of cron, in a time zone. A minute that was missed runs once."""

    example: ClassVar[dict[str, Any]] = {"cron": "0 8 * * 1-5", "timezone": "Europe/London"}

    cron: Annotated[str, Meta(min_length=1, max_length=200)]
    timezone: Annotated[str, Meta(min_length=1, max_length=64)] = "UTC"


class CreateWorkflow(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Orders",
        "description": "Greets customers",
        "nodes": _NODES,
        "edges": _EDGES,
    }

    name: Name
    nodes: Nodes
    edges: Edges = []
    description: Description = ""
    trigger: Schedule | None = None


class UpdateWorkflow(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"name": "Orders and refunds"}

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    nodes: Nodes | UnsetType = UNSET
    edges: Edges | UnsetType = UNSET
    trigger: Schedule | UnsetType | None = UNSET


class WorkflowSummary(msgspec.Struct):
    """`version` is the newest version, and triggers start `published_version`."""

    example: ClassVar[dict[str, Any]] = _SUMMARY

    id: str
    name: str
    description: str
    status: Status
    version: int
    published_version: int | None
    trigger: Schedule | None
    next_run_at: datetime | None
    created_by: str | None
    created_at: datetime
    updated_at: datetime


class WorkflowView(WorkflowSummary):
    example: ClassVar[dict[str, Any]] = _WORKFLOW

    nodes: list[Node]
    edges: list[Edge]


class VersionSummary(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "version": 1,
        "created_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "created_at": "2026-01-01T12:00:00Z",
    }

    version: int
    created_by: str | None
    created_at: datetime


class WorkflowVersionView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "workflow_id": _ID,
        "version": 1,
        "nodes": _NODES,
        "edges": _EDGES,
    }

    workflow_id: str
    version: int
    nodes: list[Node]
    edges: list[Edge]


class NodeTypeView(msgspec.Struct):
    """`config_schema` is a JSON Schema. Texts may be templates, except in `literal` fields. A node
    takes `timeout_seconds` or `retry` only if its type has that.
    """

    example: ClassVar[dict[str, Any]] = {
        "type": "delay",
        "description": "Waits for some time, up to a year",
        "config_schema": {"type": "object"},
        "literal": [],
        "has_branches": False,
        "has_timeout": False,
        "has_retry": True,
        "config_example": {"seconds": 3600},
    }

    type: str
    description: str
    config_schema: dict[str, Any]
    literal: list[str]
    has_branches: bool
    has_timeout: bool
    has_retry: bool
    config_example: dict[str, Any]


# Executions


class ExecuteWorkflow(msgspec.Struct, kw_only=True):
    """`version` runs another version than the published one, or than the newest of a draft."""

    example: ClassVar[dict[str, Any]] = {"input": {"name": "Ada", "amount": 20}}

    input: dict[str, Any] = {}
    version: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    dry_run: bool = False


class Trigger(msgspec.Struct):
    type: TriggerType
    id: str | None


class ExecutionError(msgspec.Struct):
    code: str
    message: str
    node_id: str | None = None


class AcceptedExecution(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _EXECUTION_ID,
        "workflow_id": _ID,
        "status": "running",
        "created_at": "2026-01-01T12:00:00Z",
    }

    id: str
    workflow_id: str
    status: ExecutionStatus
    created_at: datetime


class ExecutionSummary(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _EXECUTION_SUMMARY

    id: str
    workflow_id: str
    version: int
    status: ExecutionStatus
    trigger: Trigger
    started_by: str | None
    error: ExecutionError | None
    correlation_id: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class NodeError(msgspec.Struct):
    code: str
    message: str


class NodeRun(msgspec.Struct):
    """`ref_id` is what it waits for, or has waited for: a chat job, a run of a tool, an approval,
    or an execution.
    """

    node_id: str
    type: str
    status: NodeStatus
    input: Any
    output: Any
    error: NodeError | None
    attempt: int
    ref_id: str | None
    started_at: datetime | None
    finished_at: datetime | None


class FullExecution(ExecutionSummary):
    example: ClassVar[dict[str, Any]] = {
        **_EXECUTION_SUMMARY,
        "input": {"name": "Ada", "amount": 20},
        "output": "Hello Ada",
        "nodes": [
            {
                "node_id": "greet",
                "type": "transform",
                "status": "completed",
                "input": {"output": "Hello Ada"},
                "output": "Hello Ada",
                "error": None,
                "attempt": 1,
                "ref_id": None,
                "started_at": "2026-01-01T12:00:00Z",
                "finished_at": "2026-01-01T12:00:01Z",
            }
        ],
    }

    input: dict[str, Any]
    output: Any
    nodes: list[NodeRun]


class DryNode(msgspec.Struct):
    """`would_run` is the first node with an effect, with its rendered config as input; nothing
    refuses it now. After it, nodes are `unknown`.
    """

    node_id: str
    type: str
    status: Literal["completed", "failed", "skipped", "would_run", "unknown"]
    input: Any
    output: Any
    error: NodeError | None


class DryRun(msgspec.Struct):
    """`timed_out` after 20 seconds; nodes that were not reached are `unknown`."""

    example: ClassVar[dict[str, Any]] = {
        "dry_run": True,
        "workflow_id": _ID,
        "version": 1,
        "status": "completed",
        "output": "Hello Ada",
        "error": None,
        "nodes": [
            {
                "node_id": "greet",
                "type": "transform",
                "status": "completed",
                "input": {"output": "Hello Ada"},
                "output": "Hello Ada",
                "error": None,
            }
        ],
    }

    dry_run: Literal[True]
    workflow_id: str
    version: int
    status: Literal["completed", "failed", "would_continue", "timed_out"]
    output: Any
    error: ExecutionError | None
    nodes: list[DryNode]


# Batch


class WorkflowBatch(Batch):
    example: ClassVar[dict[str, Any]] = {
        "operations": [
            {"action": "create", "data": CreateWorkflow.example},
            {"action": "update", "id": _ID, "data": {"name": "Orders and refunds"}},
            {"action": "delete", "id": "wfl_01k9x3m7e8c0v2q4r6t8w0y2a5"},
        ]
    }


class WorkflowBatchResult(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = build_example(
        _WORKFLOW, "workflow_not_found", "There is no workflow wfl_…"
    )

    results: list[OperationResult[WorkflowView]]
