"""Runs the nodes of executions: an attempt, the end of a wait, and the answer of another area."""

from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from app.domain.area import FinishedCall
from app.kit import clock
from app.kit.texts import as_json
from app.services import Services
from app.templating.expressions import Expressions
from db.fast import Row
from db.leases import Lease
from db.ledger import WorkRow
from db.session import Tx

from . import engine, rendering
from . import execution_queries as queries
from .definitions import Edge, Node
from .engine import UNREADABLE, Step
from .errors import PERMANENT
from .execution_events import chain_of
from .graph import DUE, Graph, NodeState
from .nodes.protocol import Done, Failed, NodeCall, Outcome, Wait
from .nodes.registry import NODE_TYPES
from .versions import Graphs

_MAX_OUTPUT_BYTES = 1024 * 1024
_TOO_MUCH: Final = Failed(
    "expression_limit",
    "the outputs that it reads are larger than 4 MiB together; read fewer, or make them smaller",
    is_retryable=False,
)
_TYPE_GONE = "update this instance or change the workflow: it has no nodes of the type"


class NodeAttempt(msgspec.Struct):
    """An attempt that is due, with its rendered config or the reason why there is none."""

    execution_id: str
    node: Node
    row_id: str
    number: int
    config: Any
    rendered: Any
    # What the server has answered that the node calls.
    response: Any = None

    @property
    def caller_id(self) -> str:
        return f"{self.row_id}:{self.number}"


class WorkRef(NamedTuple):
    """What work is about: an attempt of a node, or the timer that ends its wait."""

    row_id: str
    number: int
    is_timer: bool

    @property
    def caller_id(self) -> str:
        return f"{self.row_id}:{self.number}"


def parse_ref(ref_id: str) -> WorkRef:
    row_id, number, *rest = ref_id.split(":")
    return WorkRef(row_id, int(number), bool(rest))


def parse_caller_id(caller_id: str) -> tuple[str, int]:
    """Returns the id of the node's row, and the attempt."""
    row_id, _, number = caller_id.partition(":")
    return row_id, int(number)


async def load(tx: Tx, tenant_id: str, row_id: str) -> Row | None:
    return await queries.load_node(tx, tenant_id, row_id)


async def prepare(
    services: Services, graph: Graph, row: Row, number: int, tenant_id: str
) -> NodeAttempt | None:
    """Renders the config of a queued node. None when it is not queued for this attempt."""
    state = msgspec.convert(row["state"], NodeState)
    node = graph.nodes[row["node_id"]]
    if state.status not in DUE or state.attempt != number - 1:
        return None
    ids = (row["execution_id"], node, row["row_id"], number)
    node_type = NODE_TYPES.get(node.type)
    if node_type is None:
        return NodeAttempt(*ids, _build_type_gone(node), None)
    if row["reads"] and row["outputs"] is None:
        return NodeAttempt(*ids, _TOO_MUCH, None)
    values = build_values(row)
    rendered = await rendering.render(services.get(Expressions), node_type, node, values, tenant_id)
    if isinstance(rendered, Failed):
        return NodeAttempt(*ids, rendered, None)
    return NodeAttempt(*ids, rendering.convert(node_type, rendered), rendered)


def build_values(row: Row) -> dict[str, Any]:
    """Returns what templates and conditions see. JSON stays as it is: decoded, it may take many
    times its length, and this process does not look at it.
    """
    return {
        "input": msgspec.Raw(row["input"].encode()),
        "nodes": msgspec.Raw((row["outputs"] or "{}").encode()),
        "execution": {
            "id": row["execution_id"],
            "workflow_id": row["workflow_id"],
            "workflow_name": row["workflow_name"],
            "version": row["version"],
            "trigger": {"type": row["trigger_type"], "id": row["trigger_id"]},
            "started_by": row["started_by"],
            "created_at": row["created_at"].isoformat(),
            "correlation_id": row["correlation_id"],
        },
    }


async def load_graph(tx: Tx, services: Services, tenant_id: str, row: Row) -> Graph:
    return await services.get(Graphs).load(tx, tenant_id, row["workflow_id"], row["version"])


async def call_server(services: Services, tenant_id: str, attempt: NodeAttempt) -> None:
    """Calls the server of a node that has one, before `run`. Raises ApiError, as that does."""
    node_type = NODE_TYPES.get(attempt.node.type)
    if node_type is not None and node_type.calls_server and not isinstance(attempt.config, Failed):
        attempt.response = await node_type.call_server(
            services, tenant_id, attempt.caller_id, attempt.config
        )


async def run(
    tx: Tx, services: Services, tenant_id: str, attempt: NodeAttempt, lease: Lease | None = None
) -> WorkRow | None:
    """Runs an attempt, and stores its outcome and what comes next. Returns the work that the holder
    of the lease runs next. Raises ApiError when the node cannot run; the caller then rolls back and
    calls `fail`.
    """
    if not isinstance(attempt.config, Failed):
        await NODE_TYPES[attempt.node.type].lock(tx, tenant_id, attempt.config)
    step = await _open(tx, services, tenant_id, attempt, lease)
    if step is None:
        return None
    with chain_of(step.execution):
        outcome = attempt.config
        if not isinstance(outcome, Failed):
            call = _build_call(step, attempt)
            outcome = await NODE_TYPES[attempt.node.type].run(call, attempt.config)
        await _record(step, attempt.node, outcome, attempt.rendered)
    return step.next_row


async def fail(
    tx: Tx, services: Services, tenant_id: str, attempt: NodeAttempt, failed: Failed
) -> None:
    step = await _open(tx, services, tenant_id, attempt)
    if step is not None:
        with chain_of(step.execution):
            await step.fail(attempt.node.id, failed, attempt.rendered)


async def _open(
    tx: Tx, services: Services, tenant_id: str, attempt: NodeAttempt, lease: Lease | None = None
) -> Step | None:
    step = await engine.open_step(tx, services, tenant_id, attempt.execution_id, lease)
    node_id = attempt.node.id
    if step is None or not step.is_current(node_id, attempt.number - 1, *DUE):
        return None
    step.start_attempt(node_id)
    return step


def _build_call(step: Step, attempt: NodeAttempt) -> NodeCall:
    execution = step.execution
    return NodeCall(
        step.tx,
        step.services,
        execution.tenant_id,
        execution.id,
        execution.workflow_id,
        attempt.node,
        attempt.caller_id,
        execution.depth,
        clock.now(),
        attempt.response,
    )


async def _record(step: Step, node: Node, outcome: Outcome, node_input: Any = None) -> None:
    match outcome:
        case Done(output, branch):
            encoded = _encode_output(output)
            if isinstance(encoded, Failed):
                await step.fail(node.id, encoded, node_input)
            else:
                await step.complete(node.id, encoded, branch=branch, node_input=node_input)
        case Failed():
            await step.fail(node.id, outcome, node_input)
        case Wait():
            await step.wait(node.id, outcome, node_input, find_timeout(node))


def _encode_output(output: Any) -> str | Failed:
    try:
        text = as_json(output)
    except (TypeError, ValueError, RecursionError):
        return Failed("invalid_output", "the output cannot be written as JSON", is_retryable=False)
    if len(text) > _MAX_OUTPUT_BYTES:
        too_large = f"the output is larger than {_MAX_OUTPUT_BYTES // 1024} KiB"
        return Failed("output_too_large", too_large, is_retryable=False)
    return text


def find_timeout(node: Node) -> float | None:
    node_type = NODE_TYPES[node.type]
    return node.timeout_seconds or node_type.timeout_seconds


async def end_wait(tx: Tx, services: Services, tenant_id: str, ref: WorkRef) -> None:
    """A timer has fired: the node has waited long enough, or what it waits for takes too long."""
    row = await queries.find_node(tx, tenant_id, ref.row_id)
    if row is None:
        return
    node_id, execution_id = row["node_id"], row["execution_id"]
    step = await engine.open_step(tx, services, tenant_id, execution_id)
    if step is None or not step.is_current(node_id, ref.number, "running", "waiting"):
        return
    node = step.graph.nodes.get(node_id)
    node_type = NODE_TYPES.get(node.type) if node else None
    with chain_of(step.execution):
        if node_type is not None and node_type.ends_by_time:
            await step.complete(node_id, as_json({"until": clock.now()}))
            return
        await _stop_waiting(step, node_id, ref)
        await step.fail(node_id, _build_timeout(node) if node else UNREADABLE)


async def _stop_waiting(step: Step, node_id: str, ref: WorkRef) -> None:
    execution = step.execution
    for row in await queries.list_refs(step.tx, execution.tenant_id, execution.id, [node_id]):
        await engine.stop_later(step.tx, execution.tenant_id, ref.caller_id, row["ref_id"])


def _build_timeout(node: Node) -> Failed:
    if node.type not in NODE_TYPES:
        return _build_type_gone(node)
    seconds = timedelta(seconds=find_timeout(node) or 0)
    return Failed("timeout", f"took more than {seconds}")


def _build_type_gone(node: Node) -> Failed:
    return Failed("unknown_node_type", f"{_TYPE_GONE} {node.type}", is_retryable=False)


async def give_up(tx: Tx, services: Services, tenant_id: str, ref: WorkRef, reason: str) -> None:
    """Fails a node whose work was given up, because every attempt to run it raised or died."""
    row = await queries.find_node(tx, tenant_id, ref.row_id)
    if row is None:
        return
    step = await engine.open_step(tx, services, tenant_id, row["execution_id"])
    node_id = row["node_id"]
    if step is None or not _concerns(step, node_id, ref):
        return
    with chain_of(step.execution):
        if ref.is_timer:
            await _stop_waiting(step, node_id, ref)
        else:
            step.start_attempt(node_id)
        await step.fail(node_id, Failed("internal_error", reason, is_retryable=False))


def _concerns(step: Step, node_id: str, ref: WorkRef) -> bool:
    """True when the node is still in the state for which the work was queued."""
    if ref.is_timer:
        return step.is_current(node_id, ref.number, "running", "waiting")
    return step.is_current(node_id, ref.number - 1, *DUE)


async def on_call_finished(call: FinishedCall) -> None:
    """Another area has finished what a node waits for."""
    row_id, number = parse_caller_id(call.caller_id)
    row = await queries.find_node(call.tx, call.tenant_id, row_id)
    if row is None:
        return
    step = await engine.open_step(call.tx, call.services, call.tenant_id, row["execution_id"])
    node_id = row["node_id"]
    if step is None or not step.is_current(node_id, number, "running", "waiting"):
        return
    node = step.graph.nodes.get(node_id)
    with chain_of(step.execution):
        if node is None:
            await step.fail(node_id, UNREADABLE)
        else:
            outcome = _build_outcome(node, step.graph.outgoing[node_id], call)
            await _record(step, node, outcome)


def _build_outcome(node: Node, edges: list[Edge], call: FinishedCall) -> Outcome:
    if call.error is not None:
        return Failed(*call.error, is_retryable=call.error[0] not in PERMANENT)
    node_type = NODE_TYPES.get(node.type)
    if node_type is None:
        return _build_type_gone(node)
    return node_type.finish(node.config, edges, call.output)


async def stop(tx: Tx, services: Services, tenant_id: str, caller_id: str, ref_id: str) -> None:
    """Stops what a node waited for."""
    row_id, _, _ = caller_id.partition(":")
    row = await queries.find_node(tx, tenant_id, row_id)
    if row is None:
        return
    graph = await load_graph(tx, services, tenant_id, row)
    node = graph.nodes[row["node_id"]]
    node_type = NODE_TYPES.get(node.type)
    if node_type is None:
        return
    call = NodeCall(
        tx,
        services,
        tenant_id,
        row["execution_id"],
        row["workflow_id"],
        node,
        caller_id,
        row["depth"],
        clock.now(),
    )
    await node_type.stop(call, ref_id)
