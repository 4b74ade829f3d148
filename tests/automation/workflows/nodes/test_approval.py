"""Nodes that wait for a decision."""

import asyncio
from typing import Any

import httpx
import pytest

from app.domain.automation.workflows import origin_queries
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused, wait_until
from tests.automation.approvals.factories import PATH as APPROVALS
from tests.automation.approvals.factories import read_approval
from tests.automation.workflows.factories import PATH as WORKFLOWS
from tests.automation.workflows.factories import create_workflow, edge, start, statuses, transform
from tests.automation.workflows.nodes.single_node import (
    build_node,
    cancel,
    read_end,
    run_single,
    start_single,
    wait_for_row,
)
from tests.database import fetch_rows, run_sql
from tests.messaging.notifications.center.api import list_notifications
from tests.world import Client, World
from workers.main import WorkerProcess

_FIND = "SELECT id FROM approvals WHERE workflow_execution_id = $1"


@pytest.fixture
async def boss(world: World, worker: WorkerProcess) -> Client:
    return await world.user("tenant_admin")


async def _decide(client: Client, approval_id: str, word: str, **body: Any) -> httpx.Response:
    return await client.post(f"{APPROVALS}/{approval_id}/{word}", body)


async def _start(client: Client, **config: Any) -> str:
    """Starts an approval that leads to `yes` or `no`."""
    nodes = [
        build_node("approval", {"title": "Refund {{ input.amount }}?", **config}),
        transform("yes", "{{ nodes.one.output }}"),
        transform("no", "{{ nodes.one.output }}"),
    ]
    edges = [edge("one", "yes", when=True), edge("one", "no", when=False)]
    workflow = await create_workflow(client, nodes, edges)
    return await start(client, workflow["id"], input={"amount": 5})


async def _find_approval(services: Services, execution_id: str) -> str:
    return str((await wait_for_row(services, _FIND, execution_id))["id"])


async def test_the_answer_takes_its_edge(
    boss: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for word, approved, taken in (("approve", True, "yes"), ("reject", False, "no")):
        with subtests.test(word):
            execution_id = await _start(boss, role="tenant_admin", message="Please")
            approval_id = await _find_approval(services, execution_id)
            approval = await read_approval(boss, approval_id)
            assert (approval["title"], approval["node_id"]) == ("Refund 5?", "one")
            answer = await _decide(boss, approval_id, word, comment="as agreed")
            assert answer.status_code == 200, answer.text
            record = await read_end(boss, execution_id)
            assert record["output"] == {"approved": approved, "comment": "as agreed"}
            ends = statuses(record)
            assert {name for name in ("yes", "no") if ends[name] == "completed"} == {taken}


async def test_a_rejection_without_an_edge_fails_the_execution(
    boss: Client, services: Services
) -> None:
    config = {"title": "Refund?", "role": "tenant_admin"}
    execution_id = await start_single(
        boss, "approval", config, retry={"max_attempts": 3, "delay_seconds": 0}
    )
    approval_id = await _find_approval(services, execution_id)
    await _decide(boss, approval_id, "reject", comment="too late")
    record = await read_end(boss, execution_id)
    assert record["error"]["code"] == "approval_rejected"
    assert "too late" in record["error"]["message"]


async def test_those_asked_are_notified(world: World, boss: Client, services: Services) -> None:
    asked = await world.user("agent_user", boss.tenant_id)
    execution_id = await _start(boss, user_ids=["{{ input.user or '" + asked.user_id + "' }}"])
    await _find_approval(services, execution_id)

    async def find() -> list[dict[str, Any]]:
        found = await list_notifications(asked)
        return [item for item in found if item["type"] == "approval_requested"]

    (notification,) = await wait_until(find)
    assert "Refund 5?" in notification["title"]


async def test_an_approval_without_an_answer_ends_as_its_config_says(
    boss: Client, subtests: pytest.Subtests
) -> None:
    modes = ("reject", "approve", "fail")
    config = {"role": "tenant_admin", "timeout_seconds": 1}
    ids = [await _start(boss, **config, on_timeout=mode) for mode in modes]
    records = dict(zip(modes, [await read_end(boss, item) for item in ids], strict=True))
    with subtests.test("reject"):
        assert records["reject"]["output"] == {"approved": False, "comment": None}
        assert statuses(records["reject"])["no"] == "completed"
    with subtests.test("approve"):
        assert records["approve"]["output"] == {"approved": True, "comment": None}
        assert statuses(records["approve"])["yes"] == "completed"
    with subtests.test("fail"):
        assert records["fail"]["error"]["code"] == "approval_timeout"


async def test_two_answers_at_once_continue_the_execution_once(
    world: World, boss: Client, services: Services
) -> None:
    second = await world.user("tenant_admin", boss.tenant_id)
    execution_id = await _start(boss, role="tenant_admin")
    approval_id = await _find_approval(services, execution_id)
    answers = await asyncio.gather(
        _decide(boss, approval_id, "approve"), _decide(second, approval_id, "reject")
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    record = await read_end(boss, execution_id)
    assert record["output"]["approved"] is (answers[0].status_code == 200)
    ends = statuses(record)
    assert sorted((ends["yes"], ends["no"])) == ["completed", "skipped"]
    sql = "SELECT id FROM work WHERE tenant_id = $1 AND kind = 'workflows.node'"
    assert len(await fetch_rows(services, sql, boss.tenant_id)) == 2


async def test_an_approval_ends_with_its_execution_and_with_its_node(
    boss: Client, services: Services, subtests: pytest.Subtests
) -> None:
    ended = f"{_FIND} AND status = 'cancelled'"
    with subtests.test("cancelled execution"):
        execution_id = await _start(boss, role="tenant_admin")
        approval_id = await _find_approval(services, execution_id)
        assert (await cancel(boss, execution_id))["status"] == "cancelled"
        await wait_for_row(services, ended, execution_id)
        assert (await _decide(boss, approval_id, "approve")).status_code == 409
    with subtests.test("timeout of the node"):
        config = {"title": "Refund?", "role": "tenant_admin"}
        execution_id = await start_single(boss, "approval", config, timeout_seconds=0.2)
        record = await read_end(boss, execution_id)
        assert record["error"]["code"] == "timeout"
        await wait_for_row(services, ended, execution_id)


async def test_a_long_title_is_cut(boss: Client, services: Services) -> None:
    config = {"title": "{{ input.title }}", "role": "tenant_admin"}
    execution_id = await start_single(boss, "approval", config, {"title": "é\n" * 300})
    approval = await read_approval(boss, await _find_approval(services, execution_id))
    assert approval["title"] == ("é " * 100).rstrip()


async def test_a_node_that_nobody_can_decide_fails(
    world: World, boss: Client, services: Services, subtests: pytest.Subtests
) -> None:
    viewer = await world.user("viewer", boss.tenant_id)
    inactive = await world.user("agent_user", boss.tenant_id)
    await run_sql(services, "UPDATE users SET status = 'inactive' WHERE id = $1", inactive.user_id)
    stranger = await world.user("tenant_admin")
    for name, user_id in (
        ("unknown", "usr_nobody"),
        ("without permission", viewer.user_id),
        ("inactive", inactive.user_id),
        ("of another tenant", stranger.user_id),
    ):
        with subtests.test(name):
            config = {"title": "Refund?", "user_ids": ["{{ input.user }}"]}
            node = await run_single(boss, "approval", config, {"user": user_id})
            assert node["error"]["code"] == "nobody_can_decide"
            assert user_id in node["error"]["message"]
    with subtests.test("others can"):
        config = {"title": "Refund?", "user_ids": [boss.user_id, "{{ input.user }}"]}
        execution_id = await start_single(boss, "approval", config, {"user": inactive.user_id})
        approval = await read_approval(boss, await _find_approval(services, execution_id))
        assert approval["user_ids"] == [boss.user_id]
    with subtests.test("a role without active users"):
        config = {"title": "Refund?", "role": "agent_user"}
        node = await run_single(boss, "approval", config)
        assert node["error"]["code"] == "nobody_can_decide"
        assert "agent_user" in node["error"]["message"]


async def test_those_who_cannot_decide_are_refused_when_the_workflow_is_saved(
    world: World, boss: Client, services: Services, subtests: pytest.Subtests
) -> None:
    viewer = await world.user("viewer", boss.tenant_id)
    inactive = await world.user("agent_user", boss.tenant_id)
    await run_sql(services, "UPDATE users SET status = 'inactive' WHERE id = $1", inactive.user_id)
    for field, value, message in (
        ("user_ids", [boss.user_id, viewer.user_id], "may not decide approvals"),
        ("user_ids", [inactive.user_id], "is not active"),
        ("role", "viewer", "may not decide approvals"),
    ):
        with subtests.test(message, field=field):
            node = build_node("approval", {"title": "Refund?", field: value})
            answer = await boss.post(WORKFLOWS, {"name": "Orders", "nodes": [node]})
            error = refused(answer, 422, "validation_error")
            assert set(error["details"]) == {f"nodes.0.config.{field}"}
            assert message in error["details"][f"nodes.0.config.{field}"]


async def test_an_approval_says_what_started_it_and_shows_the_details_of_its_config(
    boss: Client, services: Services
) -> None:
    details = {"Amount": "{{ input.amount }} EUR", "Password": "{{ input.amount }}"}
    execution_id = await _start(boss, role="tenant_admin", details=details)
    approval = await read_approval(boss, await _find_approval(services, execution_id))
    (row,) = await fetch_rows(
        services, "SELECT name FROM workflows WHERE tenant_id = $1", boss.tenant_id
    )
    assert approval["origin"] == {
        "workflow_name": row["name"],
        "trigger_type": "manual",
        "trigger_name": "Test User",
    }
    assert approval["details"] == [
        {"name": "Amount", "value": "5 EUR"},
        {"name": "Password", "value": "********"},
    ]


_NAMED_ROWS = {
    "form": "INSERT INTO forms (tenant_id, id, name, slug, field_count)"
    " VALUES ($1, $2, 'Thing', $2, 0)",
    "webhook": "INSERT INTO incoming_webhooks (tenant_id, id, name, slug)"
    " VALUES ($1, $2, 'Thing', $2)",
    "event": "INSERT INTO event_subscriptions (tenant_id, id, event_type, action_type,"
    " action_config) VALUES ($1, $2, 'Thing', 'webhook', '{}')",
}


async def test_every_trigger_of_an_execution_has_a_name(
    boss: Client, services: Services, subtests: pytest.Subtests
) -> None:
    execution_id = await _start(boss, role="tenant_admin")
    tenant_id, change = boss.tenant_id, "UPDATE workflow_executions SET trigger_type = $2,"
    change += " trigger_id = $3 WHERE id = $1 RETURNING id"
    rows = {kind: new_id("row") for kind in _NAMED_ROWS}
    for kind, sql in _NAMED_ROWS.items():
        await fetch_rows(services, sql, tenant_id, rows[kind])
    names = "SELECT name FROM workflows WHERE tenant_id = $1"
    (workflow,) = await fetch_rows(services, names, tenant_id)
    for kind, trigger_id, name in (
        *((kind, rows[kind], "Thing") for kind in rows),
        ("form", "frm_deleted", None),
        ("workflow", execution_id, workflow["name"]),
        ("schedule", None, None),
    ):
        with subtests.test(kind, id=trigger_id):
            await run_sql(services, change, execution_id, kind, trigger_id)
            async with services.db.tx(tenant_id) as tx:
                row = await origin_queries.find(tx, tenant_id, execution_id)
            assert row is not None
            assert (row["trigger_type"], row["trigger_name"]) == (kind, name)
