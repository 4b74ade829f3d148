"""Dry runs: everything up to the first effect is rendered, and nothing is stored."""

import asyncio
from typing import Any

import pytest

from app.domain.automation.workflows import dry_run
from app.services import Services
from app.templating.expressions import Expressions
from tests.agents.tools.tool_requests import create_tool
from tests.assertions import refused
from tests.automation.workflows.factories import (
    PATH,
    chain,
    condition,
    create_published,
    create_workflow,
    edge,
    transform,
)
from tests.data.tables.api import create_table
from tests.database import fetch_rows
from tests.messaging.notifications.factories import create_channel
from tests.platform.events.database import load_events, load_work
from tests.world import Client


async def _dry_run(client: Client, workflow_id: str, **values: Any) -> dict[str, Any]:
    body = {"input": values, "dry_run": True}
    answer = await client.post(f"{PATH}/{workflow_id}/execute", body)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def _statuses(dry: dict[str, Any]) -> dict[str, str]:
    return {node["node_id"]: node["status"] for node in dry["nodes"]}


async def test_a_workflow_without_effects_is_run_to_its_end(developer: Client) -> None:
    nodes = [
        condition("large", "input.amount > 100"),
        transform("refuse", "no"),
        transform("greet", "Hello {{ input.name }}"),
        transform("end", {"text": "{{ nodes.greet.output }}!"}),
    ]
    edges = [
        edge("large", "refuse", when=True),
        edge("large", "greet", when=False),
        edge("greet", "end"),
    ]
    workflow = await create_workflow(developer, nodes, edges)
    dry = await _dry_run(developer, workflow["id"], name="Ada", amount=3)
    assert (dry["dry_run"], dry["version"], dry["status"]) == (True, 1, "completed")
    assert (dry["output"], dry["error"]) == ({"text": "Hello Ada!"}, None)
    assert dry["workflow_id"] == workflow["id"]
    assert _statuses(dry) == {
        "large": "completed",
        "refuse": "skipped",
        "greet": "completed",
        "end": "completed",
    }


async def test_it_stops_before_the_first_effect_and_stores_nothing(
    developer: Client, services: Services
) -> None:
    table = await create_table(developer, [{"name": "n", "type": "integer"}])
    insert = {
        "id": "store",
        "type": "data_table",
        "config": {
            "table_id": table["id"],
            "operation": "insert",
            "values": {"n": "{{ nodes.double.output }}"},
        },
    }
    nodes = [transform("double", "{{ input.n * 2 }}"), insert, transform("end", 1)]
    workflow = await create_workflow(developer, nodes, chain("double", "store", "end"))
    events = len(await load_events(services, developer.tenant_id))
    dry = await _dry_run(developer, workflow["id"], n=21)
    assert (dry["status"], dry["output"], dry["error"]) == ("would_continue", None, None)
    assert _statuses(dry) == {"double": "completed", "store": "would_run", "end": "unknown"}
    assert dry["nodes"][1]["input"]["values"] == {"n": 42}
    sql = "SELECT 1 FROM workflow_executions WHERE tenant_id = $1"
    assert await fetch_rows(services, sql, developer.tenant_id) == []
    assert len(await load_events(services, developer.tenant_id)) == events
    assert await load_work(services, developer.tenant_id) == []
    rows = (await developer.get(f"/api/v1/data-tables/{table['id']}/rows")).json()
    assert rows["data"] == []


async def test_an_expression_that_fails_is_reported(developer: Client) -> None:
    nodes = [condition("check", "input.missing > 1"), transform("end", 1)]
    workflow = await create_workflow(developer, nodes, [edge("check", "end", when=True)])
    dry = await _dry_run(developer, workflow["id"])
    assert dry["status"] == "failed"
    assert (dry["error"]["code"], dry["error"]["node_id"]) == ("expression_error", "check")
    assert _statuses(dry) == {"check": "failed", "end": "unknown"}


async def test_a_rendered_value_of_the_wrong_type_is_reported(developer: Client) -> None:
    delay = {"id": "wait", "type": "delay", "config": {"seconds": "{{ input.seconds }}"}}
    workflow = await create_workflow(developer, [delay])
    dry = await _dry_run(developer, workflow["id"], seconds="soon")
    assert (dry["status"], dry["error"]["code"]) == ("failed", "invalid_config")
    dry = await _dry_run(developer, workflow["id"], seconds=5)
    assert (dry["status"], dry["nodes"][0]["input"]) == ("would_continue", {"seconds": 5})


async def test_a_field_that_takes_a_text_gets_one(
    developer: Client, subtests: pytest.Subtests
) -> None:
    """A template that is one expression keeps the type of its value elsewhere."""
    config = {"title": "{{ input.value }}", "role": "agent_developer"}
    approval = {"id": "ask", "type": "approval", "config": config}
    workflow = await create_workflow(developer, [approval])
    for value, text in ((5, "5"), (1.5, "1.5"), (True, "true"), ({"a": [1]}, '{"a":[1]}')):
        with subtests.test(text):
            dry = await _dry_run(developer, workflow["id"], value=value)
            assert dry["nodes"][0]["status"] == "would_run"
            assert dry["nodes"][0]["input"]["title"] == text
    with subtests.test("null"):
        dry = await _dry_run(developer, workflow["id"])
        assert dry["error"]["code"] == "invalid_config"


async def test_a_reference_that_is_gone_is_refused(developer: Client) -> None:
    called = await create_workflow(developer, [transform("a", 1)])
    call = {"id": "call", "type": "workflow", "config": {"workflow_id": called["id"]}}
    workflow = await create_workflow(developer, [call])
    await developer.delete(f"{PATH}/{called['id']}")
    answer = await developer.post(f"{PATH}/{workflow['id']}/execute", {"dry_run": True})
    error = refused(answer, 422, "validation_error")
    assert set(error["details"]) == {"nodes.0.config.workflow_id"}


async def test_a_version_can_be_chosen(developer: Client) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    path = f"{PATH}/{workflow['id']}"
    await developer.put(path, {"nodes": [transform("a", 2)]})
    for version, output in ((1, 1), (2, 2), (None, 2)):
        answer = await developer.post(f"{path}/execute", {"dry_run": True, "version": version})
        assert answer.json()["data"]["output"] == output
    answer = await developer.post(f"{path}/execute", {"dry_run": True, "version": 3})
    refused(answer, 404, "workflow_version_not_found")
    answer = await developer.post(f"{PATH}/wfl_nothing/execute", {"dry_run": True})
    refused(answer, 404, "workflow_not_found")


# What would fail at once


async def test_what_would_refuse_the_first_effect_is_found(
    admin: Client, services: Services, subtests: pytest.Subtests
) -> None:
    schema = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    tool = await create_tool(admin, input_schema=schema)
    disabled = await create_tool(admin, name="Off", is_enabled=False)
    draft = await create_workflow(admin, [transform("a", 1)])
    channel = await create_channel(admin, active=False)
    table = await create_table(admin, [{"name": "n", "type": "integer"}])
    agent = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    agent_id = (await admin.post("/api/v1/agents", agent)).json()["id"]
    await admin.put(f"/api/v1/agents/{agent_id}", {"status": "archived"})
    texts = {"title": "Look", "message": "Here"}
    insert = {"table_id": table["id"], "operation": "insert", "values": {"n": "{{ input.n }}"}}
    for node_type, config, code in (
        ("tool", {"tool_id": tool["id"], "input": {"town": "Ulm"}}, "validation_error"),
        ("tool", {"tool_id": disabled["id"]}, "tool_disabled"),
        ("workflow", {"workflow_id": draft["id"]}, "workflow_not_published"),
        ("notification", {"channel_id": channel["id"], **texts}, "channel_inactive"),
        ("data_table", insert, "validation_error"),
        ("agent", {"agent_id": agent_id, "message": "Hi"}, "agent_archived"),
        ("approval", {"role": "agent_user", "title": "May I?"}, "nobody_can_decide"),
        ("delay", {"until": "{{ input.n }}"}, "validation_error"),
    ):
        with subtests.test(node_type, code=code):
            workflow = await create_workflow(
                admin, [{"id": "a", "type": node_type, "config": config}]
            )
            dry = await _dry_run(admin, workflow["id"], n="soon")
            assert (dry["status"], dry["error"]["code"]) == ("failed", code)
            assert dry["nodes"][0]["status"] == "failed"
            assert dry["nodes"][0]["input"] is not None


async def test_a_first_effect_of_each_type_leaves_nothing(
    admin: Client, services: Services, subtests: pytest.Subtests
) -> None:
    called = await create_published(admin, [transform("a", 1)])
    tool = await create_tool(admin)
    channel = await create_channel(admin)
    texts = {"title": "Look", "message": "Here"}
    counts = await _count_rows(services, admin.tenant_id)
    for node_type, config in (
        ("tool", {"tool_id": tool["id"]}),
        ("workflow", {"workflow_id": called}),
        ("notification", {"channel_id": channel["id"], **texts}),
        ("approval", {"role": "tenant_admin", "title": "May I?", "timeout_seconds": 60}),
        ("delay", {"seconds": 60}),
    ):
        with subtests.test(node_type):
            body = {"nodes": [{"id": "a", "type": node_type, "config": config}], "name": "Dry"}
            workflow_id = (await admin.post(PATH, body)).json()["data"]["id"]
            dry = await _dry_run(admin, workflow_id)
            assert (dry["status"], dry["error"]) == ("would_continue", None)
            assert _statuses(dry) == {"a": "would_run"}
            assert await _count_rows(services, admin.tenant_id) == counts


async def _count_rows(services: Services, tenant_id: str) -> list[int]:
    tables = (
        "work",
        "approvals",
        "workflow_executions",
        "tool_executions",
        "notification_messages",
    )
    return [
        len(await fetch_rows(services, f"SELECT 1 FROM {table} WHERE tenant_id = $1", tenant_id))
        for table in tables
    ]


# Limits


async def test_a_rendering_gets_only_the_outputs_that_it_reads(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[list[str]] = []
    render = Expressions.render

    async def spy(expressions: Expressions, value: Any, values: Any, *, group: str) -> Any:
        names.append(sorted(values["nodes"]))
        return await render(expressions, value, values, group=group)

    monkeypatch.setattr(Expressions, "render", spy)
    nodes = [transform("a", 1), transform("b", 2), transform("c", "{{ nodes.b.output }}")]
    workflow = await create_workflow(developer, nodes, chain("a", "b", "c"))
    dry = await _dry_run(developer, workflow["id"])
    assert (dry["output"], names) == (2, [["b"]])


async def test_a_dry_run_ends_after_some_time(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(Expressions, "render", never)
    monkeypatch.setattr(dry_run, "_MAX_SECONDS", 0.05)
    nodes = [transform("a", 1), transform("b", "{{ nodes.a.output }}"), transform("c", 3)]
    workflow = await create_workflow(developer, nodes, chain("a", "b", "c"))
    dry = await _dry_run(developer, workflow["id"])
    assert (dry["status"], dry["error"]["code"]) == ("timed_out", "dry_run_timeout")
    assert _statuses(dry) == {"a": "completed", "b": "unknown", "c": "unknown"}
