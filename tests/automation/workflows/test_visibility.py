"""Who sees what flows through workflows."""

import pytest

from tests.automation.workflows.factories import (
    EXECUTIONS,
    PATH,
    condition,
    create_workflow,
    read,
    run,
    transform,
)
from tests.world import World
from workers.main import WorkerProcess


async def test_who_may_not_run_workflows_sees_no_content_of_executions(
    world: World, worker: WorkerProcess
) -> None:
    developer = await world.user("agent_developer")
    viewer = await world.user("viewer", tenant_id=developer.tenant_id)
    nodes = [transform("greet", "Hello {{ input.name }}"), condition("fail", "input.secret > 1")]
    workflow = await create_workflow(developer, nodes)
    record = await run(developer, workflow["id"], name="Ada")
    assert record["error"]["message"] != ""
    shown = await read(viewer, record["id"])
    assert (shown["status"], shown["input"], shown["output"]) == ("failed", {}, None)
    assert shown["error"] == {"code": "expression_error", "message": "", "node_id": "fail"}
    assert all(node["input"] is None and node["output"] is None for node in shown["nodes"])
    assert "Ada" not in str(shown)
    for path in (EXECUTIONS, f"{PATH}/{workflow['id']}/executions"):
        (summary,) = (await viewer.get(path)).json()["data"]
        assert summary["error"]["message"] == ""


async def test_callers_without_workflows_write_see_no_configs_of_nodes(
    world: World, subtests: pytest.Subtests
) -> None:
    developer = await world.user("agent_developer")
    viewer = await world.user("viewer", tenant_id=developer.tenant_id)
    output = {"api_key": "k-1", "text": "Hello {{ input.name }}"}
    workflow = await create_workflow(developer, [transform("a", output)])
    path = f"{PATH}/{workflow['id']}"
    for suffix in ("", "/versions/1"):
        with subtests.test(path=suffix):
            (node,) = (await developer.get(path + suffix)).json()["data"]["nodes"]
            assert node["config"]["output"] == output
            (node,) = (await viewer.get(path + suffix)).json()["data"]["nodes"]
            assert node == {"id": "a", "type": "transform"}
    diff = await viewer.get(f"{path}/versions/1/diff/1")
    assert diff.json()["error"]["details"]["required"] == "workflows:write"
