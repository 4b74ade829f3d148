"""A type of node that this product does not have: one class and one row of the registry suffice."""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import pytest

from app.domain.automation.workflows import controllers
from app.domain.automation.workflows.nodes.protocol import (
    ColumnReference,
    Done,
    Id,
    NodeCall,
    NodeType,
    Outcome,
    Reference,
)
from app.domain.automation.workflows.nodes.registry import NODE_TYPES
from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import (
    PATH,
    chain,
    create_published,
    edge,
    read,
    start,
    statuses,
    transform,
)
from tests.automation.workflows.manual_worker import Hand
from tests.data.tables.api import create_table
from tests.world import Client


class PickConfig(msgspec.Struct, forbid_unknown_fields=True):
    """Conditions besides templates, and a column of a table."""

    first: str
    second: str
    label: str
    table_id: Id
    column: str


class EvaluatedPick(msgspec.Struct):
    first: bool
    second: bool
    label: str
    table_id: str
    column: str


class PickNode(NodeType[EvaluatedPick]):
    name: ClassVar[str] = "pick"
    description: ClassVar[str] = "Takes one of two branches by two conditions"
    config: ClassVar[type[msgspec.Struct]] = PickConfig
    rendered: ClassVar[type[msgspec.Struct] | None] = EvaluatedPick
    example: ClassVar[dict[str, Any]] = {"first": "input.a", "second": "input.b"}
    literal: ClassVar[frozenset[str]] = frozenset({"table_id", "column"})
    conditions: ClassVar[frozenset[str]] = frozenset({"first", "second"})
    has_branches: ClassVar[bool] = True
    has_effect: ClassVar[bool] = False
    has_retry: ClassVar[bool] = False

    def list_references(self, config: dict[str, Any]) -> Iterator[Reference]:
        yield Reference("table", config["table_id"], "table_id")

    def list_columns(self, config: dict[str, Any]) -> Iterator[ColumnReference]:
        yield ColumnReference(config["table_id"], config["column"], "column")

    async def run(self, call: NodeCall, config: EvaluatedPick) -> Outcome:
        del call
        is_picked = config.first and config.second
        return Done({"label": config.label}, branch=is_picked)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(NODE_TYPES, PickNode.name, PickNode())
    controllers.list_node_types.cache_clear()
    yield
    controllers.list_node_types.cache_clear()


async def _build_nodes(client: Client, **changes: Any) -> list[dict[str, Any]]:
    table = await create_table(client)
    config = {
        "first": "nodes.a.output.amount > 3",
        "second": "nodes['a'].output.amount < 9",
        "label": "{{ nodes.a.output.amount }} EUR",
        "table_id": table["id"],
        "column": "score",
    }
    return [
        transform("a", {"amount": "{{ input.amount }}"}),
        {"id": "pick", "type": "pick", "config": {**config, **changes}},
        transform("yes", "{{ nodes.pick.output.label }}"),
        transform("no", "none"),
    ]


EDGES = [edge("a", "pick"), edge("pick", "yes", when=True), edge("pick", "no", when=False)]


async def test_a_new_type_is_listed(developer: Client) -> None:
    listed = (await developer.get("/api/v1/workflow-node-types")).json()["data"]
    [item] = [item for item in listed if item["type"] == "pick"]
    assert item["has_branches"] is True
    assert item["literal"] == ["column", "first", "second", "table_id"]


async def test_its_conditions_and_templates_see_the_outputs_before_it(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, await _build_nodes(developer), EDGES)
    hand = Hand(services, developer.tenant_id)
    for amount, taken, output in ((5, "yes", "5 EUR"), (2, "no", "none"), (10, "no", "none")):
        execution_id = await start(developer, workflow_id, input={"amount": amount})
        await hand.run_due()
        record = await read(developer, execution_id)
        assert (record["status"], record["output"]) == ("completed", output)
        assert statuses(record)[taken] == "completed"


async def test_a_dry_run_runs_it(developer: Client) -> None:
    workflow_id = await create_published(developer, await _build_nodes(developer), EDGES)
    body = {"input": {"amount": 5}, "dry_run": True}
    answer = await developer.post(f"{PATH}/{workflow_id}/execute", body)
    assert answer.json()["data"]["output"] == "5 EUR"


async def test_its_config_is_checked(developer: Client, subtests: pytest.Subtests) -> None:
    for changes, field, message in (
        ({"second": "nodes.b.output"}, "config", "reads nodes.b, which does not exist"),
        ({"label": "{{ nodes.yes.output }}"}, "config", "reads nodes.yes, which does not come"),
        ({"second": "1 +"}, "config.second", ""),
        ({"table_id": "tbl_none"}, "config.table_id", "this data table does not exist"),
        ({"column": "nothing"}, "config.column", "the table has no column 'nothing'"),
        ({"column": "{{ input.x }}"}, "config.column", "must not be a template"),
        ({"more": 1}, "config.more", "is not a known field; use one of:"),
    ):
        with subtests.test(changes=changes):
            nodes = await _build_nodes(developer, **changes)
            answer = await developer.post(PATH, {"name": "Orders", "nodes": nodes, "edges": EDGES})
            details = refused(answer, 422, "validation_error")["details"]
            assert details[f"nodes.1.{field}"].startswith(message)


async def test_messages_about_types_name_it(developer: Client) -> None:
    nodes = [transform("a", 1), transform("b", 1), {"id": "c", "type": "none", "config": {}}]
    edges = [edge("a", "b", when=True)]
    answer = await developer.post(PATH, {"name": "Orders", "nodes": nodes[:2], "edges": edges})
    message = refused(answer, 422, "validation_error")["details"]["edges.0.when"]
    assert message == (
        "is only for edges from nodes with branches: condition and approval and pick"
    )
    body = {"name": "Orders", "nodes": nodes, "edges": chain("a", "b", "c")}
    details = refused(await developer.post(PATH, body), 422, "validation_error")["details"]
    assert details["nodes.2.type"].endswith(", pick")
