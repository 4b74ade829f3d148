"""Random workflows and random orders of events, compared with a model after each step."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from litestar import Litestar

from app.domain.automation.workflows.nodes.data_table import DataTableNode
from app.domain.automation.workflows.nodes.protocol import NodeCall, Outcome
from app.kit.errors import Conflict
from tests.automation.workflows.factories import (
    EXECUTIONS,
    by_node,
    condition,
    create_workflow,
    edge,
    read,
    start,
    transform,
)
from tests.automation.workflows.manual_worker import Hand
from tests.automation.workflows.model import ENDED, Model, ModelNode
from tests.lengths import rounds
from tests.world import Client, World

T = TypeVar("T")
KINDS = ["value", "insert", "yes", "no", "delay", "approval", "broken"]
# An execution must not find rows of the one before it, or a limit that was reached by it.
CLEAR = (
    "DELETE FROM workflow_executions WHERE tenant_id = $1",
    "DELETE FROM work WHERE tenant_id = $1",
    "DELETE FROM data_rows WHERE tenant_id = $1",
)
_insert = DataTableNode.run


async def _insert_and_break(self: DataTableNode, call: NodeCall, config: Any) -> Outcome:
    """Inserts a row, and fails afterwards as often as the value says."""
    outcome = await _insert(self, call, config)
    name, _, failures = config.values["text"].partition(":")
    if failures and int(call.caller_id.partition(":")[2]) <= int(failures):
        raise Conflict(f"{name} is broken")
    return outcome


@st.composite
def models(draw: st.DrawFn) -> Model:
    names = [f"n{number}" for number in range(draw(st.integers(1, 6)))]
    nodes = {name: ModelNode(name, draw(st.sampled_from(KINDS))) for name in names}
    for node in nodes.values():
        if node.kind == "broken":
            node.failures, node.attempts = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    pairs = [(a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=9)) if pairs else []
    edges = []
    for a, b in chosen:
        has_branches = nodes[a].kind in {"yes", "no", "approval"}
        edges.append((a, b, draw(st.sampled_from([None, True, False])) if has_branches else None))
    return Model(nodes, edges)


class Machine(RuleBasedStateMachine):
    """Runs the same events on an execution and on the model."""

    loop: ClassVar[asyncio.AbstractEventLoop]
    client: ClassVar[Client]
    hand: ClassVar[Hand]
    table_id: ClassVar[str]

    model: Model
    execution_id: str
    record: dict[str, Any]

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    @initialize(model=models())
    def begin(self, model: Model) -> None:
        self.model = model
        self.approvals: list[tuple[str, int, str]] = []
        for sql in CLEAR:
            self._run(self.hand.sql(sql, self.client.tenant_id))
        edges = [edge(a, b, when=when) for a, b, when in model.edges]
        nodes = [self._build(node) for node in model.nodes.values()]
        workflow = self._run(create_workflow(self.client, nodes, edges))
        self.execution_id = self._run(start(self.client, workflow["id"]))

    def _build(self, node: ModelNode) -> dict[str, Any]:
        match node.kind:
            case "value":
                return transform(node.name, node.name)
            case "yes" | "no":
                return condition(node.name, "1 == 1" if node.kind == "yes" else "1 == 2")
            case "delay":
                return {"id": node.name, "type": "delay", "config": {"seconds": 3600}}
            case "approval":
                asked = {"title": "Go on?", "user_ids": [self.client.user_id]}
                return {"id": node.name, "type": "approval", "config": asked}
        failures = f":{node.failures}" if node.failures else ""
        values = {"text": f"{node.name}{failures}"}
        config = {"table_id": self.table_id, "operation": "insert", "values": values}
        retry = {"max_attempts": node.attempts, "delay_seconds": 3600}
        return {"id": node.name, "type": "data_table", "config": config, "retry": retry}

    # Events

    @precondition(lambda self: self.model.list_queued())
    @rule(data=st.data(), twice=st.booleans())
    def run_node(self, data: st.DataObject, twice: bool) -> None:  # noqa: FBT001  # drawn
        name = data.draw(st.sampled_from(self.model.list_queued()))
        self._run(self._run_work(name, timer=False, twice=twice))
        self.model.run(name)

    @precondition(lambda self: self.model.list_waiting("delay"))
    @rule(data=st.data(), twice=st.booleans())
    def fire_timer(self, data: st.DataObject, twice: bool) -> None:  # noqa: FBT001  # drawn
        name = data.draw(st.sampled_from(self.model.list_waiting("delay")))
        self._run(self._run_work(name, timer=True, twice=twice))
        self.model.complete(name)

    async def _run_work(self, name: str, *, timer: bool, twice: bool) -> None:
        """Runs all work of the current attempt of a node: more than one row after a retry."""
        number = self.model.nodes[name].attempt + (0 if timer else 1)
        rows = await self.hand.sql(
            "UPDATE work w SET run_at = now() FROM workflow_nodes n WHERE n.execution_id = $1"
            " AND n.node_id = $2 AND w.ref_id = n.id || $3 AND w.state = 'pending' RETURNING w.id",
            self.execution_id,
            name,
            f":{number}{':timer' if timer else ''}",
        )
        assert rows
        if twice:
            ids = [row["id"] for row in rows] * 2
            await asyncio.gather(*map(self.hand.run, ids))
        for row in rows:
            await self.hand.run(row["id"])

    @precondition(lambda self: self.model.list_waiting("approval"))
    @rule(data=st.data(), answer=st.sampled_from(["approve", "reject"]))
    def decide(self, data: st.DataObject, answer: str) -> None:
        name = data.draw(st.sampled_from(self.model.list_waiting("approval")))
        ref_id = by_node(self.record)[name]["ref_id"]
        assert self._run(self._answer(ref_id, answer)) == 200
        if answer == "approve":
            self.model.complete(name, branch=True)
        else:
            self.model.reject(name)

    async def _answer(self, approval_id: str, answer: str) -> int:
        path = f"/api/v1/approvals/{approval_id}/{answer}"
        return (await self.client.post(path, {})).status_code

    @rule(data=st.data(), answer=st.sampled_from(["approve", "reject"]))
    def answer_late(self, data: st.DataObject, answer: str) -> None:
        """Answers any approval for which the execution no longer waits."""
        waiting = {node["ref_id"] for node in self.record["nodes"] if node["status"] == "waiting"}
        late = sorted({entry[2] for entry in self.approvals} - waiting)
        if late:
            self._run(self._answer(data.draw(st.sampled_from(late)), answer))

    @rule()
    def repeat_all_work(self) -> None:
        """Delivers work again whose outcome is known."""
        self._run(self.hand.repeat())

    @rule(runs_stops=st.booleans())
    def cancel(self, runs_stops: bool) -> None:  # noqa: FBT001  # drawn
        answer = self._run(self.client.post(f"{EXECUTIONS}/{self.execution_id}/cancel"))
        assert answer.is_success == (self.model.status not in ENDED)
        if answer.is_success:
            self.model.cancel()
        if runs_stops:
            self._run(self._run_stops())

    async def _run_stops(self) -> None:
        for row in await self.hand.fetch(
            "SELECT id FROM work WHERE tenant_id = $1 AND kind = 'workflows.stop'",
            self.client.tenant_id,
        ):
            await self.hand.run(row["id"])

    @rule()
    def retry(self) -> None:
        answer = self._run(self.client.post(f"{EXECUTIONS}/{self.execution_id}/retry"))
        assert answer.is_success == (self.model.status in {"failed", "cancelled"})
        if answer.is_success:
            self.model.retry()

    # Comparison

    @invariant()
    def execution_equals_model(self) -> None:
        self.record = self._run(read(self.client, self.execution_id))
        expected = {
            name: (_shown(node.status), node.attempt) for name, node in self.model.nodes.items()
        }
        nodes = self.record["nodes"]
        actual = {node["node_id"]: (node["status"], node["attempt"]) for node in nodes}
        assert (self.record["status"], actual) == (self.model.status, expected)
        for node in nodes:
            if node["type"] == "approval" and node["ref_id"]:
                self.approvals.append((node["node_id"], node["attempt"], node["ref_id"]))
            if node["status"] == "completed":
                assert _comparable(node["output"]) == self.model.output_of(node["node_id"])
        if self.model.status == "completed":
            assert _comparable_output(self.record["output"]) == self.model.find_output()
        assert self._run(self._count_effects()) == (
            Counter(self.model.rows),
            Counter(self.model.completions),
        )

    async def _count_effects(self) -> tuple[Counter[str], Counter[str]]:
        rows = await self.hand.fetch(
            "SELECT split_part(value, ':', 1) AS name FROM data_rows,"
            ' jsonb_each_text("values") WHERE table_id = $1',
            self.table_id,
        )
        events = await self.hand.fetch(
            "SELECT data->>'node_id' AS name FROM event_log WHERE tenant_id = $1"
            " AND type = 'workflow.execution.node_completed' AND data->>'execution_id' = $2",
            self.client.tenant_id,
            self.execution_id,
        )
        return Counter(row["name"] for row in rows), Counter(row["name"] for row in events)


def _shown(status: str) -> str:
    return "pending" if status in {"queued", "delayed"} else status


def _comparable(output: Any) -> Any:
    """Without ids and times."""
    return {} if isinstance(output, dict) and output.keys() & {"row", "until"} else output


def _comparable_output(output: Any) -> Any:
    if isinstance(output, dict) and all(key.startswith("n") for key in output):
        return {name: _comparable(value) for name, value in output.items()}
    return _comparable(output)


@pytest.fixture(scope="session")
async def loop() -> asyncio.AbstractEventLoop:
    """The application's event loop, which is idle while a synchronous test runs."""
    return asyncio.get_running_loop()


async def _prepare(app: Litestar) -> None:
    Machine.client = await World(app).user("tenant_admin")
    Machine.hand = Hand(app.state.services, Machine.client.tenant_id)
    columns = [{"name": "text", "type": "text"}]
    body = {"name": "T", "columns": columns}
    answer = await Machine.client.post("/api/v1/data-tables", body)
    Machine.table_id = answer.json()["data"]["id"]


def test_an_execution_does_what_the_model_does_in_whatever_order_events_come(
    app: Litestar, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DataTableNode, "run", _insert_and_break)
    Machine.loop = loop
    loop.run_until_complete(_prepare(app))
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=rounds(8, 20),
            stateful_step_count=16,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
