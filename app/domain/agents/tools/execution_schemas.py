from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from .schemas import EXAMPLE_AGENT_ID, EXAMPLE_TOOL_ID

Status = Literal["completed", "failed", "timeout"]
Period = Literal["24h", "7d", "30d", "90d"]

_EXECUTION_ID = "exe_01k9x3m7e8c0v2q4r6t8w0y2a4"


class Execute(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"input": {"numbers": [1, 2, 3]}}

    input: dict[str, Any] = {}
    agent_id: (
        Annotated[
            str, Meta(max_length=64, description="Run it as this agent would, with its settings")
        ]
        | None
    ) = None


class Failure(msgspec.Struct):
    code: str
    message: str


class ExecutionResult(msgspec.Struct, omit_defaults=True, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "execution_id": _EXECUTION_ID,
        "status": "completed",
        "output": {"sum": 6},
        "execution_time_ms": 38,
        "executed_at": "2026-01-02T09:00:00Z",
    }

    execution_id: str
    status: Status
    output: Any = UNSET
    error: Failure | UnsetType = UNSET
    execution_time_ms: int
    executed_at: datetime


class ExecutionView(msgspec.Struct):
    """In a list, an input or output of more than 32 KiB is null; a request for the single execution
    returns it.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": _EXECUTION_ID,
        "tool_id": EXAMPLE_TOOL_ID,
        "agent_id": None,
        "status": "completed",
        "input": {"numbers": [1, 2, 3]},
        "output": {"sum": 6},
        "error": None,
        "execution_time_ms": 38,
        "executed_at": "2026-01-02T09:00:00Z",
    }

    id: str
    tool_id: str
    agent_id: str | None
    status: Status
    input: dict[str, Any] | None
    output: Any
    error: Failure | None
    execution_time_ms: int
    executed_at: datetime


class Day(msgspec.Struct):
    date: str
    executions: int
    failures: int


class TopAgent(msgspec.Struct):
    agent_id: str
    agent_name: str
    executions: int


class ToolStats(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "tool_id": EXAMPLE_TOOL_ID,
        "period": "7d",
        "total_executions": 12,
        "successful": 11,
        "failed": 1,
        "success_rate": 91.67,
        "avg_execution_time_ms": 41.5,
        "p95_execution_time_ms": 80.0,
        "p99_execution_time_ms": 95.0,
        "daily_breakdown": [{"date": "2026-01-02", "executions": 12, "failures": 1}],
        "top_agents": [{"agent_id": EXAMPLE_AGENT_ID, "agent_name": "Support", "executions": 5}],
    }

    tool_id: str
    period: Period
    total_executions: int
    successful: int
    failed: int
    success_rate: float
    avg_execution_time_ms: float
    p95_execution_time_ms: float
    p99_execution_time_ms: float
    daily_breakdown: list[Day]
    top_agents: list[TopAgent]
