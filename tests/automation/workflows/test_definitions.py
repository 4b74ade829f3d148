"""Definitions of workflows: what is refused when they are saved, and that the field is named."""

from typing import Any

import pytest

from app.areas import AREAS
from app.domain.automation.workflows import queries
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
from tests.identity.roles.api_calls import set_permissions
from tests.messaging.notifications.factories import create_channel
from tests.world import Client

_UNKNOWN = "none_01k9x3m7e8c0v2q4r6t8w0y2a4"
A, B, C = transform("a", 1), transform("b", 2), transform("c", 3)


def node(node_id: str, node_type: str, **config: Any) -> dict[str, Any]:
    return {"id": node_id, "type": node_type, "config": config}


async def _find_problems(
    client: Client, nodes: list[Any], edges: list[Any] | None = None, **fields: Any
) -> dict[str, str]:
    body = {"name": "Orders", "nodes": nodes, "edges": edges or [], **fields}
    error = refused(await client.post(PATH, body), 422, "validation_error")
    details: dict[str, str] = error["details"]
    return details


_GRAPHS: list[tuple[str, list[Any], list[Any], str, str]] = [
    ("a cycle", [A, B, C], chain("a", "b", "c", "b"), "edges", "form a cycle: b -> c -> b"),
    ("an edge to itself", [A], [edge("a", "a")], "edges", "form a cycle: a -> a"),
    ("no target", [A], [edge("a", "nobody")], "edges.0.to", "there is no node nobody"),
    ("no source", [A], [edge("nobody", "a")], "edges.0.from", "there is no node nobody"),
    (
        "an edge twice",
        [A, B],
        [edge("a", "b")] * 2,
        "edges.1",
        "repeats an earlier edge; remove it",
    ),
    ("an id twice", [A, B, A], [], "nodes.2.id", "a"),
    ("no nodes", [], [], "nodes", "must not be empty"),
    ("too many nodes", [transform(f"n{n}", 1) for n in range(101)], [], "nodes", "100"),
    (
        "a branch of a node without branches",
        [A, B],
        [edge("a", "b", when=True)],
        "edges.0.when",
        "is only for edges from nodes with branches: condition and approval",
    ),
    ("an unknown type", [node("a", "magic")], [], "nodes.0.type", "must be one of agent, tool"),
    ("an id with a hyphen", [transform("a-b", 1)], [], "nodes.0.id", "letters"),
    ("a long id", [transform("a" * 65, 1)], [], "nodes.0.id", "64"),
]


async def test_a_wrong_graph_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for name, nodes, edges, field, message in _GRAPHS:
        with subtests.test(name):
            problems = await _find_problems(developer, nodes, edges)
            assert set(problems) == {field}
            assert message in problems[field]


def _read(text: str) -> list[Any]:
    return [A, transform("b", text), C]


_NOT_BEFORE = "reads nodes.c, which does not come before this node"
_CONFIGS: list[tuple[str, list[Any], str, str]] = [
    ("no config", [node("a", "transform")], "nodes.0.config.output", "is required"),
    (
        "an unknown key",
        [node("a", "delay", second=1)],
        "nodes.0.config.second",
        "did you mean seconds?",
    ),
    ("a wrong type", [node("a", "delay", seconds="soon")], "nodes.0.config.seconds", "a number"),
    ("a wrong number", [node("a", "delay", seconds=-1)], "nodes.0.config.seconds", "0"),
    ("nothing to wait for", [node("a", "delay")], "nodes.0.config", "needs either"),
    (
        "a template as a reference",
        [node("a", "workflow", workflow_id="{{ input.id }}")],
        "nodes.0.config.workflow_id",
        "must not be a template",
    ),
    (
        "a template that does not end",
        [transform("a", {"x": ["{{ input."]})],
        "nodes.0.config.output.x.0",
        "",
    ),
    ("an unknown name", [transform("a", "{{ secrets.key }}")], "nodes.0.config.output", "secrets"),
    ("a bad condition", [condition("a", "input.amount >")], "nodes.0.config.expression", ""),
    ("an unknown name in CEL", [condition("a", "secrets.x")], "nodes.0.config.expression", ""),
    (
        "a condition that is too long",
        [condition("a", "input.a == 'x' || " * 2000 + "true")],
        "nodes.0.config.expression",
        "",
    ),
    (
        "a condition that is too deep",
        [condition("a", "(" * 200 + "true" + ")" * 200)],
        "nodes.0.config.expression",
        "",
    ),
    (
        "a template that is too deep",
        [transform("a", "{{ " + "(" * 300 + "1" + ")" * 300 + " }}")],
        "nodes.0.config.output",
        "",
    ),
    ("a node that is not there", _read("{{ nodes.z.output }}"), "nodes.1.config", "does not exist"),
    ("a node that is not before", _read("{{ nodes.c.output }}"), "nodes.1.config", _NOT_BEFORE),
    ("the node itself", _read("{{ nodes.b.output }}"), "nodes.1.config", "nodes.b"),
    ("a node by a key", _read("{{ nodes['c'].output }}"), "nodes.1.config", _NOT_BEFORE),
    (
        "a node that is not before, in CEL",
        [A, condition("b", "nodes.c.output == 1"), C],
        "nodes.1.config",
        _NOT_BEFORE,
    ),
    ("a wrong retry", [{**A, "retry": {"max_attempts": 11}}], "nodes.0.retry.max_attempts", "10"),
    (
        "a timeout of a node that waits for nothing",
        [{**node("a", "delay", seconds=1), "timeout_seconds": 5}],
        "nodes.0.timeout_seconds",
        "is only for nodes of the types agent, approval, tool, workflow",
    ),
    (
        "a retry of a node that always does the same",
        [{**A, "retry": {"max_attempts": 2}}],
        "nodes.0.retry",
        "is only for nodes of the types agent, approval, data_table",
    ),
    ("a wrong timeout", [{**A, "timeout_seconds": 0}], "nodes.0.timeout_seconds", "0.1"),
    ("a config that is no object", [{**A, "config": []}], "nodes.0.config", "object"),
]


async def test_a_wrong_config_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for name, nodes, field, message in _CONFIGS:
        with subtests.test(name):
            problems = await _find_problems(developer, nodes, [edge("a", "b")] if nodes[1:] else [])
            assert set(problems) == {field}
            assert message in problems[field]


async def test_only_expressions_refer_to_nodes(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for name, item in (
        ("plain text", transform("a", "See nodes.html")),
        ("text around a template", transform("a", "{{ input.a }} is in nodes.html")),
        ("a text in a template", transform("a", "{{ 'nodes.html' ~ input.a }}")),
        ("a comment", transform("a", "{# nodes.html #}{{ input.a }}")),
        ("a raw block", transform("a", "{% raw %}{{ nodes.html }}{% endraw %}")),
        ("a text in a condition", condition("a", "input.a == 'nodes.html'")),
    ):
        with subtests.test(name):
            await create_workflow(developer, [item])
    for template in (
        "{{ {'a': {'b': 1}} and nodes.html }}",
        "{% if nodes.html %}1{% endif %}",
        "{# '{{' #}{{ nodes['html'] }}",
        "{{ '}}' ~ nodes.html }}",
    ):
        with subtests.test(template):
            problems = await _find_problems(developer, [transform("a", template)])
            assert set(problems) == {"nodes.0.config"}
            assert "reads nodes.html, which does not exist" in problems["nodes.0.config"]


async def test_a_config_that_is_too_large_or_too_deep_is_refused(developer: Client) -> None:
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    assert set(await _find_problems(developer, [transform("a", deep)])) == {"nodes.0.config"}
    large = [transform("a", "x" * 65_537)]
    assert set(await _find_problems(developer, large)) == {"nodes.0.config"}
    many = [transform(f"n{number}", "x" * 60_000) for number in range(10)]
    assert set(await _find_problems(developer, many)) == {"nodes"}


async def test_all_problems_of_a_definition_are_named_at_once(developer: Client) -> None:
    nodes = [node("a", "delay", seconds=-1), node("b", "magic"), node("c", "transform")]
    problems = await _find_problems(developer, nodes, [edge("a", "nobody")])
    assert set(problems) == {
        "edges.0.to",
        "nodes.0.config.seconds",
        "nodes.1.type",
        "nodes.2.config.output",
    }


_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"name": "two\nlines"}, "name"),
    ({"description": 7}, "description"),
    ({"trigger": {"cron": "* * * *"}}, "trigger.cron"),
    ({"trigger": {"cron": "99 * * * *"}}, "trigger.cron"),
    ({"trigger": {"cron": "0 0 31 2 *"}}, "trigger.cron"),
    ({"trigger": {"cron": "0 8 * * *", "timezone": "Mars/Olympus"}}, "trigger.timezone"),
    ({"trigger": {"cron": "0 8 * * *", "timezone": "../etc/passwd"}}, "trigger.timezone"),
    ({"trigger": {"cron": "0 8 * * *", "every": 5}}, "trigger.every"),
    ({"trigger": {}}, "trigger.cron"),
]


async def test_a_wrong_field_is_named(developer: Client, subtests: pytest.Subtests) -> None:
    for fields, name in _FIELDS:
        with subtests.test(fields=fields):
            assert set(await _find_problems(developer, [A], **fields)) == {name}


# References


async def _list_foreign(other: Client) -> dict[str, list[dict[str, Any]]]:
    """Nodes that refer to what only another tenant has."""
    agent = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    agent_id = (await other.post("/api/v1/agents", agent)).json()["id"]
    tool = {
        "name": "Look up",
        "category": "custom",
        "tool_type": "webhook",
        "config": {"url": "https://example.com/hook", "method": "POST"},
        "auth_type": "none",
    }
    tool_id = (await other.post("/v1/tools", tool)).json()["data"]["id"]
    table_id = (await create_table(other))["id"]
    workflow_id = await create_published(other, [A])
    channel_id = (await create_channel(other))["id"]
    texts = {"title": "Look", "message": "Here"}
    return {
        "agent_id": [node("a", "agent", agent_id=x, message="Hi") for x in (agent_id, _UNKNOWN)],
        "tool_id": [node("a", "tool", tool_id=x) for x in (tool_id, _UNKNOWN)],
        "table_id": [
            node("a", "data_table", table_id=x, operation="query") for x in (table_id, _UNKNOWN)
        ],
        "workflow_id": [node("a", "workflow", workflow_id=x) for x in (workflow_id, _UNKNOWN)],
        "channel_id": [
            node("a", "notification", channel_id=x, **texts) for x in (channel_id, _UNKNOWN)
        ],
        "user_ids": [
            node("a", "notification", user_ids=[other.user_id], **texts),
            node("a", "approval", user_ids=[other.user_id], title="May I?"),
            node("a", "approval", user_ids=["{{ input.user }}", _UNKNOWN], title="May I?"),
        ],
        "role": [
            node("a", "notification", role="king", **texts),
            node("a", "approval", role="king", title="May I?"),
        ],
    }


async def test_what_the_tenant_does_not_have_is_refused(
    developer: Client, admin: Client, subtests: pytest.Subtests
) -> None:
    for field, nodes in (await _list_foreign(admin)).items():
        for item in nodes:
            with subtests.test(item=item):
                problems = await _find_problems(developer, [item])
                assert set(problems) == {f"nodes.0.config.{field}"}


async def test_a_new_version_is_checked_like_a_new_workflow(developer: Client) -> None:
    workflow = await create_workflow(developer, [A, B], chain("a", "b"))
    path = f"{PATH}/{workflow['id']}"
    for body, field in (
        ({"nodes": [node("a", "magic"), B]}, "nodes.0.type"),
        ({"nodes": [node("a", "workflow", workflow_id=_UNKNOWN), B]}, "nodes.0.config.workflow_id"),
        ({"nodes": [A]}, "edges.0.to"),
        ({"edges": chain("a", "b", "a")}, "edges"),
        ({"trigger": {"cron": "never"}}, "trigger.cron"),
    ):
        error = refused(await developer.put(path, body), 422, "validation_error")
        assert set(error["details"]) == {field}
    assert (await developer.get(path)).json()["data"] == workflow


async def test_a_reference_that_is_gone_is_found_when_the_workflow_is_published(
    developer: Client,
) -> None:
    called = await create_published(developer, [A])
    workflow = await create_workflow(developer, [node("a", "workflow", workflow_id=called)])
    assert (await developer.delete(f"{PATH}/{called}")).status_code == 204
    answer = await developer.post(f"{PATH}/{workflow['id']}/publish")
    error = refused(answer, 422, "validation_error")
    assert set(error["details"]) == {"nodes.0.config.workflow_id"}
    assert (await developer.get(f"{PATH}/{workflow['id']}")).json()["data"]["status"] == "draft"


# Permissions


async def test_an_author_may_only_save_nodes_that_do_what_the_author_may_do(
    developer: Client, super_admin: Client, subtests: pytest.Subtests
) -> None:
    """The check comes before that of references, so that the ids may be unknown."""
    texts = {"title": "Look", "message": "Here"}
    nodes = {
        "agents:chat": node("a", "agent", agent_id=_UNKNOWN, message="Hi"),
        "tools:execute": node("a", "tool", tool_id=_UNKNOWN),
        "data_tables:write": node("a", "data_table", table_id=_UNKNOWN, operation="query"),
        "notifications:write": node("a", "notification", role="viewer", **texts),
        "workflows:execute": node("a", "workflow", workflow_id=_UNKNOWN),
    }
    workflow = await create_workflow(developer, [A])
    grants = sorted(AREAS.default_grants["agent_developer"])
    try:
        for permission, item in nodes.items():
            with subtests.test(permission=permission):
                rest = [name for name in grants if name != permission]
                await set_permissions(super_admin, "agent_developer", *rest)
                for answer in (
                    await developer.post(PATH, {"name": "Orders", "nodes": [item]}),
                    await developer.put(f"{PATH}/{workflow['id']}", {"nodes": [item]}),
                ):
                    error = refused(answer, 403, "forbidden")
                    assert error["details"]["required"] == permission
    finally:
        await set_permissions(super_admin, "agent_developer", *grants)


async def test_the_number_of_workflows_is_limited(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_WORKFLOWS", 2)
    workflows = [await create_workflow(developer, [A]) for _ in range(2)]
    refused(await developer.post(PATH, {"name": "Orders", "nodes": [A]}), 409, "conflict")
    assert (await developer.delete(f"{PATH}/{workflows[0]['id']}")).status_code == 204
    await create_workflow(developer, [A])
