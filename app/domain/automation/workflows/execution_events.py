"""The events of an execution as a whole, and the chain that all its events belong to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from app.domain.area import Event
from app.kit import trace
from app.kit.trace import Trace

from .events import ExecutionCancelled, ExecutionCompleted, ExecutionFailed, ExecutionStarted
from .execution_queries import Execution

_MAX_OUTPUT_BYTES = 64 * 1024


@contextmanager
def chain_of(execution: Execution) -> Iterator[None]:
    """Makes events and work inside belong to the trace of the execution. A request or job of the
    same trace keeps its part in it.
    """
    before = trace.current_or_none()
    current = before or Trace(execution.correlation_id)
    if current.correlation_id != execution.correlation_id:
        current = Trace(execution.correlation_id)
    trace.begin(
        msgspec.structs.replace(
            current,
            cause_event_id=execution.cause_event_id,
            tenant_id=execution.tenant_id,
        )
    )
    try:
        yield
    finally:
        if before is not None:
            trace.begin(before)


def _describe(execution: Execution) -> tuple[str, str, str, int, str, str | None]:
    """Returns the fields that all events about an execution begin with."""
    return (
        execution.id,
        execution.workflow_id,
        execution.workflow_name,
        execution.version,
        execution.trigger_type,
        execution.started_by,
    )


def build_start(execution: Execution) -> Event:
    return ExecutionStarted(*_describe(execution))


def build_end(
    execution: Execution, status: str, output: str | None, error: dict[str, Any] | None
) -> Event:
    fields = _describe(execution)
    if status == "cancelled":
        return ExecutionCancelled(*fields)
    if error is not None:
        reason = (error["code"], error["message"], error.get("node_id"))
        return ExecutionFailed(*fields, execution.owner_id, *reason)
    is_large = output is None or len(output) > _MAX_OUTPUT_BYTES
    return ExecutionCompleted(*fields, None if is_large else msgspec.json.decode(output or ""))
