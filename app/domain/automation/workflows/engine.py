"""The engine: the steps of an execution from its start to its end.

Each step is one transaction, with a lock on the row of the execution: the outcome of a node is
stored together with what comes next. Whatever is killed, an execution goes on from its last step.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from app.domain.area import Areas, Event, FinishedCall
from app.domain.platform.events import api as events
from app.jobs import work
from app.kit import clock, logs
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db import ledger
from db.leases import Lease
from db.ledger import WorkRow
from db.session import Tx

from . import execution_events
from . import execution_queries as queries
from .definitions import Definition
from .errors import PERMANENT, WorkflowVersionNotFound
from .events import NodeCompleted
from .execution_queries import Execution, NodeChange, QueuedNode, StepChanges
from .graph import ENDED, UNFINISHED, Graph, NodeState
from .nodes.protocol import Failed, NodeTypes, Wait
from .references import list_reads
from .versions import Graphs
from .work_kinds import STOP

log = logs.get("workflows")

_MAX_STORED_BYTES = 16 * 1024 * 1024
_TOO_LARGE: Final = Failed(
    "output_too_large",
    f"the inputs and outputs of all nodes are larger than {_MAX_STORED_BYTES // 1024**2} MiB",
    is_retryable=False,
)
_NOT_STARTED = "it could not be started; retry it, or save the workflow again"
UNREADABLE: Final = Failed(
    "internal_error",
    "the definition of this version cannot be read; save the workflow again and start it anew",
    is_retryable=False,
)


class Step:
    """What one transaction changes in an execution, whose row is locked. With a lease, its holder
    runs the first node that can run next, `next_row`.
    """

    def __init__(
        self,
        tx: Tx,
        services: Services,
        execution: Execution,
        graph: Graph,
        lease: Lease | None = None,
    ) -> None:
        self.tx = tx
        self.services = services
        self.execution = execution
        self.graph = graph
        self.next_row: WorkRow | None = None
        self._lease = lease
        self._was_running = execution.status == "running"
        # Nodes whose attempt begins with this step.
        self._started: set[str] = set()
        # Timers of nodes that no longer wait.
        self._ended_timers: list[str] = []
        self._changes: list[NodeChange] = []
        self._queue: list[QueuedNode] = []
        self._events: list[Event] = []
        self._output: str | None = None
        self._error: str | None = None

    @property
    def _progress(self) -> dict[str, NodeState]:
        return self.execution.progress

    @property
    def has_ended(self) -> bool:
        return self.execution.status in ENDED

    async def begin(self) -> None:
        """Starts a pending execution, or continues one that is retried."""
        execution = self.execution
        if not execution.progress:
            execution.progress = self.graph.start()
            nodes = _encode_nodes(self.graph, self.services.get(NodeTypes))
            await queries.insert_nodes(self.tx, execution.tenant_id, execution.id, nodes)
        event_id = new_id("evt")
        started = execution_events.build_start(execution)
        await events.emit(self.tx, started, tenant_id=execution.tenant_id, event_id=event_id)
        # The events of its nodes are consequences of its start.
        execution.cause_event_id = event_id
        await self._advance()

    def is_current(self, node_id: str, attempt: int, *statuses: str) -> bool:
        """True while the node is in this attempt and in one of the statuses."""
        state = self._progress.get(node_id)
        return (
            not self.has_ended
            and state is not None
            and state.attempt == attempt
            and state.status in statuses
        )

    def start_attempt(self, node_id: str) -> None:
        state = self._progress[node_id]
        self._started.add(node_id)
        self._set(node_id, NodeState("running", None, state.attempt + 1, state.earlier))

    async def complete(
        self, node_id: str, output: str, *, branch: bool | None = None, node_input: Any = None
    ) -> None:
        """`output` is JSON. Fails the node when the execution has become too large."""
        encoded = output.encode()
        if self.execution.stored_bytes + len(encoded) > _MAX_STORED_BYTES:
            # Without the input, which may be what is too large.
            await self.fail(node_id, _TOO_LARGE)
            return
        self.execution.stored_bytes += len(encoded)
        state = self._progress[node_id]
        self._set(node_id, state.to("completed", branch=branch))
        self._changes.append(
            NodeChange(
                node_id=node_id,
                status="completed",
                attempt=state.attempt,
                input=self._encode_input(node_input),
                output=msgspec.Raw(encoded),
                has_started=node_id in self._started,
                has_finished=True,
            )
        )
        execution, node = self.execution, self.graph.nodes[node_id]
        self._events.append(
            NodeCompleted(execution.id, execution.workflow_id, node_id, node.type, state.attempt)
        )
        await self._advance()

    async def wait(
        self, node_id: str, wait: Wait, node_input: Any, timeout_seconds: float | None
    ) -> None:
        """Stores that the node waits. A timer completes a delay at its end, and fails any other
        wait after `timeout_seconds`.
        """
        attempt = self._progress[node_id].attempt
        status = "running" if wait.is_running else "waiting"
        self._changes.append(
            NodeChange(
                node_id=node_id,
                status=status,
                attempt=attempt,
                input=self._encode_input(node_input),
                ref_id=wait.ref_id,
                has_started=True,
            )
        )
        until, timer = wait.until, None
        if until is None and timeout_seconds is not None:
            until = clock.now() + timedelta(seconds=timeout_seconds)
        if until is not None:
            timer = self._add_work(node_id, attempt, "timer", until)
        self._set(node_id, self._progress[node_id].to(status, timer=timer))
        await self._store()

    async def fail(self, node_id: str, failed: Failed, node_input: Any = None) -> None:
        """Queues the next attempt of the node, or fails the execution."""
        node, state = self.graph.nodes.get(node_id), self._progress[node_id]
        attempt, number = state.attempt, state.attempt - state.earlier
        error = {"code": failed.code, "message": failed.message[:2000]}
        is_last = node is None or not failed.is_retryable or number >= node.max_attempts
        status = "failed" if is_last else "pending"
        self._changes.append(
            NodeChange(
                node_id=node_id,
                status=status,
                attempt=attempt,
                input=self._encode_input(node_input),
                error=msgspec.Raw(as_json(error).encode()),
                has_started=node_id in self._started,
                has_finished=is_last,
            )
        )
        if node is None or is_last:
            self._set(node_id, state.to("failed"))
            await self._end("failed", {**error, "node_id": node_id})
            return
        wait = node.retry.find_delay(number) if node.retry else 0.0
        run_at = clock.now() + timedelta(seconds=wait) if wait else None
        # A delay holds no slot of the plan.
        self._set(node_id, state.to("delayed" if run_at else "queued"))
        self._add_work(node_id, attempt + 1, "run", run_at)
        await self._store()

    async def fail_start(self) -> None:
        """Fails an execution none of whose nodes could be queued."""
        await self._end("failed", {"code": "internal_error", "message": _NOT_STARTED})

    async def cancel(self) -> None:
        await self._end("cancelled", None)

    def _set(self, node_id: str, state: NodeState) -> None:
        before = self.execution.progress[node_id]
        if before.timer is not None:
            self._ended_timers.append(before.timer)
        self.execution.progress[node_id] = state

    def _encode_input(self, value: Any) -> msgspec.Raw | None:
        if value is None:
            return None
        encoded = as_json(value).encode()
        self.execution.stored_bytes += len(encoded)
        return msgspec.Raw(encoded)

    def _add_work(
        self, node_id: str, attempt: int, purpose: str, run_at: datetime | None = None
    ) -> str:
        item = QueuedNode(
            work_id=new_id("wrk"),
            node_id=node_id,
            attempt=attempt,
            purpose=purpose,
            run_at=run_at,
        )
        self._queue.append(item)
        return item.work_id

    async def _advance(self) -> None:
        """Queues the nodes that can run now, and completes the execution after the last one."""
        ready, skipped = self.graph.advance(self._progress)
        for node_id in skipped:
            self._set(node_id, NodeState("skipped"))
            self._changes.append(
                NodeChange(node_id=node_id, status="skipped", attempt=0, has_finished=True)
            )
        for node_id in ready:
            state = self._progress[node_id]
            self._set(node_id, state.to("queued"))
            self._add_work(node_id, state.attempt + 1, "run")
        if ready and self._lease is not None:
            self._queue[-len(ready)].lease_token = self._lease.token
        if any(state.status in UNFINISHED for state in self._progress.values()):
            await self._store()
            return
        self._output = await self._build_output()
        await self._end("completed", None)

    async def _build_output(self) -> str:
        """Returns the output of the last node, or those of the last nodes by their ids."""
        last = self.graph.list_last(self._progress)
        outputs = {c.node_id: bytes(c.output).decode() for c in self._changes if c.output}
        missing = [node_id for node_id in last if node_id not in outputs]
        if missing:
            ids = (self.execution.tenant_id, self.execution.id)
            outputs |= await queries.read_outputs(self.tx, *ids, missing)
        if len(last) == 1:
            return outputs[last[0]]
        return as_json({node_id: msgspec.Raw(outputs[node_id].encode()) for node_id in last})

    async def _end(self, status: str, error: dict[str, Any] | None) -> None:
        execution = self.execution
        self._error = as_json(error) if error else None
        waiting = [name for name, state in self._progress.items() if state.status in UNFINISHED]
        for node_id in waiting:
            state = self._progress[node_id]
            self._set(node_id, state.to("cancelled"))
            self._changes.append(
                NodeChange(
                    node_id=node_id, status="cancelled", attempt=state.attempt, has_finished=True
                )
            )
        self._events.append(execution_events.build_end(execution, status, self._output, error))
        await self._stop(waiting)
        execution.status = status
        await self._store()
        await self._report_end(error)

    async def _stop(self, node_ids: list[str]) -> None:
        """Work in other areas is stopped by work of its own, which locks it in the right order."""
        execution = self.execution
        if not node_ids or not execution.progress:
            return
        ids = (execution.tenant_id, execution.id)
        for row in await queries.list_refs(self.tx, *ids, node_ids):
            caller_id = f"{row['id']}:{self._progress[row['node_id']].attempt}"
            await stop_later(self.tx, execution.tenant_id, caller_id, row["ref_id"])

    async def _report_end(self, error: dict[str, Any] | None) -> None:
        execution = self.execution
        doorbell = self.services.doorbell
        self.tx.after_commit.append(partial(doorbell.announce_done, execution.id))
        if execution.caller_id is None:
            return
        failure = None
        if execution.status != "completed":
            failure = _build_failure(execution, error)
        output = msgspec.json.decode(self._output) if self._output else None
        await self.services.get(Areas).on_call_finished(
            FinishedCall(
                self.tx,
                self.services,
                execution.tenant_id,
                execution.caller_id,
                output,
                failure,
            )
        )

    async def _store(self) -> None:
        execution, was_running = self.execution, self._was_running
        if not self.has_ended:
            statuses = {state.status for state in self._progress.values()}
            execution.status = "running" if statuses & {"queued", "running"} else "waiting"
        changes = StepChanges(
            output=self._output,
            error=self._error,
            has_finished=self.has_ended,
            nodes=self._changes,
            queue=self._queue,
            events=events.encode_events(self._events, tenant_id=execution.tenant_id),
            frees_slot=was_running and execution.status != "running",
            lease_seconds=self._lease.seconds if self._lease else 0,
        )
        self.next_row = await queries.store(self.tx, execution, changes)
        if self._ended_timers:
            # One that fires at this moment is locked; it then finds that nothing waits.
            ids = (execution.tenant_id, self._ended_timers)
            await ledger.cancel_many(self.tx, *ids, skip_locked=True)


async def open_step(
    tx: Tx, services: Services, tenant_id: str, execution_id: str, lease: Lease | None = None
) -> Step | None:
    """Locks an execution. None when it was deleted."""
    execution = await queries.lock(tx, tenant_id, execution_id)
    if execution is None:
        return None
    version = (execution.workflow_id, execution.version)
    try:
        graph = await services.get(Graphs).load(tx, tenant_id, *version)
    except (msgspec.DecodeError, WorkflowVersionNotFound):
        log.exception("a definition cannot be read", workflow_id=version[0], version=version[1])
        # Without nodes, so that the execution can still fail or be cancelled.
        graph = Graph(Definition(nodes=[], edges=[]))
    return Step(tx, services, execution, graph, lease)


async def stop_later(tx: Tx, tenant_id: str, caller_id: str, ref_id: str) -> None:
    await work.accept(tx, STOP, tenant_id=tenant_id, ref_id=f"{caller_id}/{ref_id}")


def _build_failure(execution: Execution, error: dict[str, Any] | None) -> tuple[str, str]:
    """Returns the code and the reason for the workflow that called this one."""
    if error is not None and error["code"] in PERMANENT:
        return error["code"], error["message"]
    reason = error["message"] if error else "it was cancelled"
    return f"workflow_{execution.status}", f"{execution.id}: {reason}"


def _encode_nodes(graph: Graph, node_types: NodeTypes) -> str:
    return as_json(
        [
            {
                "id": new_id("wfn"),
                "node_id": node.id,
                "type": node.type,
                "position": position,
                "reads": list_reads(graph, node, node_types.get(node.type)),
            }
            for position, node in enumerate(graph.nodes.values())
        ]
    )
