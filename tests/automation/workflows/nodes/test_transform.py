"""Nodes that build a value."""

from typing import Any

from tests.automation.workflows.nodes.single_node import fail_single, run_single
from tests.world import Client
from workers.main import WorkerProcess


async def test_values_keep_their_types_at_every_depth(
    developer: Client, worker: WorkerProcess
) -> None:
    values: dict[str, Any] = {
        "int": 7,
        "float": 2.5,
        "yes": True,
        "none": None,
        "list": [1, [2, {"a": "b"}]],
        "text": "7",
        "large": 2**60,
        "price": 19.99,
        "unicode": "ä\u2028{{ no template }}",
    }
    output = {
        "copies": {name: f"{{{{ input.{name} }}}}" for name in values},
        "deep": [{"list": ["{{ input.list[1][1].a }}"]}],
        "plain": [1, None, False, 1.5],
        "sum": "{{ input.int + input.float }}",
        "text": "{{ input.int }} of {{ input.list | length }}",
    }
    node = await run_single(developer, "transform", {"output": output}, values)
    assert node["output"] == {
        "copies": values,
        "deep": [{"list": ["b"]}],
        "plain": [1, None, False, 1.5],
        "sum": 9.5,
        "text": "7 of 2",
    }


async def test_loops_and_conditions_of_templates_work(
    developer: Client, worker: WorkerProcess
) -> None:
    text = (
        "{% for item in input.items if item.count > 0 %}{{ loop.index }}. {{ item.name }}"
        "{% if not loop.last %}, {% endif %}{% endfor %}"
    )
    items = [{"name": "a", "count": 1}, {"name": "b", "count": 0}, {"name": "c", "count": 2}]
    node = await run_single(developer, "transform", {"output": text}, {"items": items})
    assert node["output"] == "1. a, 2. c"


async def test_a_template_that_cannot_be_rendered_fails_the_node(
    developer: Client, worker: WorkerProcess
) -> None:
    config = {"output": "{{ input.count / 0 }}"}
    assert await fail_single(developer, "transform", config, {"count": 1}) == "expression_error"
