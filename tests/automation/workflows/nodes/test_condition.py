"""Nodes that take one of two branches."""

import pytest

from tests.assertions import refused
from tests.automation.workflows.factories import (
    PATH,
    condition,
    create_workflow,
    edge,
    run,
    transform,
)
from tests.automation.workflows.nodes.single_node import build_node
from tests.world import Client
from workers.main import WorkerProcess

_INPUT = {"amount": 100, "ratio": 1.5, "name": "Ada", "items": [1, 2], "inner": {"a": None}}


async def test_a_condition_takes_the_branch_of_its_value(
    developer: Client, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    cases = {
        "input.amount > 99": True,
        "input.amount > 100.5": False,
        "input.amount >= 100.0": True,
        "input.amount == 100.0": True,
        "input.ratio < 2": True,
        "has(input.name)": True,
        "has(input.missing)": False,
        "has(input.missing) && input.missing > 1": False,
        "has(input.inner.a)": True,
        "input.name.startsWith('A') && size(input.items) == 2": True,
        "input.items.exists(i, i == 2)": True,
        "execution.trigger.type == 'manual'": True,
    }
    # All in one execution, since each condition is its own node.
    nodes = [condition(f"c{index}", text) for index, text in enumerate(cases)]
    nodes += [transform(f"yes{index}", True) for index in range(len(cases))]  # noqa: FBT003  # JSON
    edges = [edge(f"c{index}", f"yes{index}", when=True) for index in range(len(cases))]
    workflow = await create_workflow(developer, nodes, edges)
    record = await run(developer, workflow["id"], **_INPUT)
    assert record["status"] == "completed", record["error"]
    by_id = {node["node_id"]: node for node in record["nodes"]}
    for index, (text, expected) in enumerate(cases.items()):
        with subtests.test(text):
            assert by_id[f"c{index}"]["output"] == {"result": expected}
            status = "completed" if expected else "skipped"
            assert by_id[f"yes{index}"]["status"] == status


async def test_a_condition_without_a_truth_value_fails_the_node(
    developer: Client, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    for text in ("input.missing > 1", "input.name", "input.amount", "input.amount / 0 > 1"):
        with subtests.test(text):
            nodes = [build_node("condition", {"expression": text})]
            workflow = await create_workflow(developer, nodes)
            record = await run(developer, workflow["id"], **_INPUT)
            assert (record["status"], record["error"]["code"]) == ("failed", "expression_error")


async def test_what_is_no_condition_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for expression in ("input.amount >", "unknown > 1", True, "", "nodes.nothing.output"):
        with subtests.test(str(expression)):
            nodes = [build_node("condition", {"expression": expression})]
            answer = await developer.post(PATH, {"name": "Orders", "nodes": nodes})
            error = refused(answer, 422, "validation_error")
            assert next(iter(error["details"])).startswith("nodes.0.config")
