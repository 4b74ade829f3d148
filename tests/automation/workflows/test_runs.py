"""Executions run by a worker: order, branches, joins, outputs and failures."""

from tests.automation.workflows.factories import (
    by_node,
    chain,
    condition,
    create_published,
    create_workflow,
    edge,
    run,
    statuses,
    transform,
)
from tests.world import Client
from workers.main import WorkerProcess


async def test_a_node_reads_the_input_and_the_outputs_before_it(
    developer: Client, worker: WorkerProcess
) -> None:
    nodes = [
        transform("double", {"amount": "{{ input.amount * 2 }}"}),
        transform("text", "{{ input.name }} pays {{ nodes.double.output.amount }}"),
    ]
    workflow = await create_workflow(developer, nodes, chain("double", "text"))
    record = await run(developer, workflow["id"], name="Ada", amount=21)
    assert (record["status"], record["output"]) == ("completed", "Ada pays 42")
    assert by_node(record)["double"]["output"] == {"amount": 42}
    assert by_node(record)["double"]["input"] == {"output": {"amount": 42}}
    assert record["trigger"] == {"type": "manual", "id": None}


async def test_only_the_taken_branch_runs_and_a_join_waits_for_both(
    developer: Client, worker: WorkerProcess
) -> None:
    nodes = [
        condition("large", "input.amount > 100"),
        transform("refuse", "refused"),
        transform("greet", "welcome"),
        transform("join", "{{ nodes.refuse.output or nodes.greet.output }}"),
    ]
    edges = [
        edge("large", "refuse", when=True),
        edge("large", "greet", when=False),
        edge("refuse", "join"),
        edge("greet", "join"),
    ]
    workflow_id = await create_published(developer, nodes, edges)
    record = await run(developer, workflow_id, amount=100.5)
    assert record["output"] == "refused"
    assert statuses(record) == {
        "large": "completed",
        "refuse": "completed",
        "greet": "skipped",
        "join": "completed",
    }
    assert (await run(developer, workflow_id, amount=3))["output"] == "welcome"


async def test_several_last_nodes_are_the_output_by_their_ids(
    developer: Client, worker: WorkerProcess
) -> None:
    nodes = [transform("first", 1), transform("left", [1, 2]), transform("right", None)]
    edges = [edge("first", "left"), edge("first", "right")]
    workflow = await create_workflow(developer, nodes, edges)
    record = await run(developer, workflow["id"])
    assert record["output"] == {"left": [1, 2], "right": None}


async def test_an_expression_that_cannot_be_evaluated_fails_the_execution(
    developer: Client, worker: WorkerProcess
) -> None:
    nodes = [condition("check", "input.missing > 1"), transform("after", 1)]
    workflow = await create_workflow(developer, nodes, [edge("check", "after", when=True)])
    record = await run(developer, workflow["id"])
    assert record["status"] == "failed"
    assert record["error"]["code"] == "expression_error"
    assert record["error"]["node_id"] == "check"
    assert statuses(record) == {"check": "failed", "after": "cancelled"}
