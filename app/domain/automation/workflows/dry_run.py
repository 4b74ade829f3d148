"""A dry run: renders and runs nodes up to the first one with an effect, and stores nothing. The
transaction of that one is rolled back, so that what would refuse it does.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from app.kit import clock, trace
from app.kit.errors import ApiError, Unavailable
from app.kit.ids import new_id
from app.security.principal import Principal
from app.services import Services
from app.templating.expressions import Expressions
from db.models import Workflow

from . import checks, rendering, starting
from . import service as workflows
from .graph import Graph, NodeState
from .nodes.protocol import Done, Failed, NodeCall, Outcome, Wait
from .nodes.registry import NODE_TYPES
from .references import list_reads
from .schemas import DryNode, DryRun, ExecuteWorkflow, ExecutionError, NodeError
from .versions import Graphs

_MAX_SECONDS = 20.0
_TIMED_OUT: Final = ExecutionError(
    "dry_run_timeout", f"the dry run took more than {_MAX_SECONDS:g} seconds; the rest is unknown"
)


async def run(
    services: Services, principal: Principal, workflow_id: str, data: ExecuteWorkflow
) -> DryRun:
    """Takes at most 20 seconds, and holds no connection while it renders. Raises Invalid when a
    node refers to something that is gone.
    """
    starting.encode_input(data.input)
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        workflow = await workflows.find(tx, workflow_id)
        version = workflows.choose_version(principal, workflow, data.version)
        tenant_id = workflow.tenant_id
        graph = await services.get(Graphs).load(tx, tenant_id, workflow.id, version)
        await checks.check_references(tx, tenant_id, list(graph.nodes.values()))
    execution = {
        "id": "wfx_dry_run",
        "workflow_id": workflow.id,
        "workflow_name": workflow.name,
        "version": version,
        "trigger": {"type": "manual", "id": None},
        "started_by": principal.user_id,
        "created_at": clock.now().isoformat(),
        "correlation_id": trace.current().correlation_id,
    }
    values = {"input": data.input, "execution": execution}
    dry = _DryExecution(services, workflow, graph, values)
    is_complete = await _run_in_time(dry.run())
    return dry.build(workflow.id, version, is_timed_out=not is_complete)


async def _run_in_time(steps: Coroutine[Any, Any, None]) -> bool:
    """Returns False when it was ended because it took too long."""
    try:
        async with asyncio.timeout(_MAX_SECONDS) as deadline:
            await steps
    except TimeoutError:
        if not deadline.expired():
            raise
        return False
    return True


class _DryExecution:
    """Walks through the graph in its order. A node after one with an effect stays unknown."""

    def __init__(
        self, services: Services, workflow: Workflow, graph: Graph, values: dict[str, Any]
    ) -> None:
        self._services = services
        self._workflow = workflow
        self._graph = graph
        self._values = values
        self._progress = graph.start()
        self._outputs: dict[str, Any] = {}
        self._nodes: dict[str, DryNode] = {}

    async def run(self) -> None:
        while not self._error:
            ready, skipped = self._graph.advance(self._progress)
            for node_id in skipped:
                self._progress[node_id] = NodeState("skipped")
                self._add(node_id, "skipped")
            if not ready:
                return
            for node_id in ready:
                await self._run_node(node_id)

    async def _run_node(self, node_id: str) -> None:
        node = self._graph.nodes[node_id]
        node_type = NODE_TYPES.get(node.type)
        if node_type is None:
            self._fail(node_id, Failed("unknown_node_type", f"there is no type {node.type}"), None)
            return
        outputs = {
            name: {"status": self._progress[name].status, "output": self._outputs.get(name)}
            for name in list_reads(self._graph, node, node_type)
        }
        values = {**self._values, "nodes": outputs}
        expressions = self._services.get(Expressions)
        tenant_id = self._workflow.tenant_id
        rendered = await rendering.render(expressions, node_type, node, values, tenant_id)
        config = (
            rendered if isinstance(rendered, Failed) else rendering.convert(node_type, rendered)
        )
        if isinstance(config, Failed):
            node_input = None if isinstance(rendered, Failed) else rendered
            self._fail(node_id, config, node_input)
            return
        outcome: Outcome = Wait()
        if not node_type.calls_server:
            outcome = await self._run_and_roll_back(node_id, config)
        if isinstance(outcome, Failed):
            self._fail(node_id, outcome, rendered)
        elif node_type.has_effect or not isinstance(outcome, Done):
            self._progress[node_id] = NodeState("waiting")
            self._add(node_id, "would_run", rendered)
        else:
            self._progress[node_id] = NodeState("completed", outcome.branch)
            self._outputs[node_id] = outcome.output
            self._add(node_id, "completed", rendered, outcome.output)

    async def _run_and_roll_back(self, node_id: str, config: Any) -> Outcome:
        """`run` of a node makes no network call, and its effects are rows of the transaction."""
        tenant_id, node = self._workflow.tenant_id, self._graph.nodes[node_id]
        tx = self._services.db.begin(tenant_id)
        ids = (tenant_id, self._values["execution"]["id"], self._workflow.id)
        call = NodeCall(tx, self._services, *ids, node, f"{new_id('wfn')}:1", 0, clock.now())
        try:
            return await NODE_TYPES[node.type].run(call, config)
        except Unavailable:
            raise
        except ApiError as error:
            return Failed(error.code, error.message)
        finally:
            await tx.rollback()

    def _fail(self, node_id: str, failed: Failed, node_input: Any) -> None:
        self._progress[node_id] = NodeState("failed")
        self._add(node_id, "failed", node_input, error=NodeError(failed.code, failed.message))

    def _add(
        self,
        node_id: str,
        status: Any,
        node_input: Any = None,
        output: Any = None,
        error: NodeError | None = None,
    ) -> None:
        node_type = self._graph.nodes[node_id].type
        self._nodes[node_id] = DryNode(node_id, node_type, status, node_input, output, error)

    @property
    def _error(self) -> ExecutionError | None:
        for node in self._nodes.values():
            if node.error is not None:
                return ExecutionError(node.error.code, node.error.message, node.node_id)
        return None

    def build(self, workflow_id: str, version: int, *, is_timed_out: bool) -> DryRun:
        for node_id in self._graph.nodes:
            if node_id not in self._nodes:
                self._add(node_id, "unknown")
        nodes = [self._nodes[node_id] for node_id in self._graph.nodes]
        last = self._graph.list_last(self._progress)
        is_complete = all(node.status in {"completed", "skipped"} for node in nodes)
        output = None
        if is_complete:
            named = {node_id: self._outputs[node_id] for node_id in last}
            output = named[last[0]] if len(last) == 1 else named
        status: Any = "completed" if is_complete else "would_continue"
        error = self._error
        if error is not None:
            status = "failed"
        elif is_timed_out:
            status, error = "timed_out", _TIMED_OUT
        return DryRun(
            True,  # noqa: FBT003  # a constant of the answer
            workflow_id,
            version,
            status,
            msgspec.to_builtins(output),
            error,
            nodes,
        )
