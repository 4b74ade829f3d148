"""A dry run: renders and runs nodes up to the first one with an effect, and stores nothing."""

from typing import Any

import msgspec

from app.domain.workflows import checks, rendering, starting
from app.domain.workflows import service as workflows
from app.domain.workflows.graph import Graph, NodeState
from app.domain.workflows.nodes.protocol import Done, Failed, NodeCall
from app.domain.workflows.nodes.registry import NODE_TYPES
from app.domain.workflows.schemas import DryNode, DryRun, ExecuteWorkflow, ExecutionError, NodeError
from app.domain.workflows.versions import Graphs
from app.kit import clock, trace
from app.kit.expressions import Expressions
from app.security.principal import Principal
from app.services import Services
from db.models import Workflow


async def run(
    services: Services, principal: Principal, workflow_id: str, data: ExecuteWorkflow
) -> DryRun:
    """Holds no connection while it renders. Raises Invalid when a node refers to something that is
    gone.
    """
    starting.encode_input(data.input)
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        workflow = await workflows.find(tx, workflow_id)
        version = workflows.choose_version(workflow, data.version)
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
    await dry.run()
    return dry.build(workflow.id, version)


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
        node_type = NODE_TYPES[node.type]
        outputs = {
            name: {"status": state.status, "output": self._outputs.get(name)}
            for name, state in self._progress.items()
        }
        values = {**self._values, "nodes": outputs}
        expressions = self._services.get(Expressions)
        tenant_id = self._workflow.tenant_id
        rendered = await rendering.render(expressions, node_type, node, values, tenant_id)
        config = (
            rendered if isinstance(rendered, Failed) else rendering.convert(node_type, rendered)
        )
        if isinstance(config, Failed):
            self._progress[node_id] = NodeState("failed")
            shown = None if isinstance(rendered, Failed) else rendered
            self._add(node_id, "failed", shown, error=NodeError(config.code, config.message))
        elif node_type.has_effect:
            self._progress[node_id] = NodeState("waiting")
            self._add(node_id, "would_run", rendered)
        else:
            outcome = await node_type.run(self._build_call(node_id), config)
            if isinstance(outcome, Done):
                self._progress[node_id] = NodeState("completed", outcome.branch)
                self._outputs[node_id] = outcome.output
                self._add(node_id, "completed", rendered, outcome.output)

    def _build_call(self, node_id: str) -> NodeCall:
        """A node without an effect does not use the transaction."""
        return NodeCall(
            self._services.db.begin(self._workflow.tenant_id),
            self._services,
            self._workflow.tenant_id,
            "",
            self._workflow.id,
            self._graph.nodes[node_id],
            "",
            0,
            clock.now(),
        )

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

    def build(self, workflow_id: str, version: int) -> DryRun:
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
        return DryRun(
            True,  # noqa: FBT003  # a constant of the answer
            workflow_id,
            version,
            "failed" if error else status,
            msgspec.to_builtins(output),
            error,
            nodes,
        )
