"""What saving a workflow costs: connections and statements."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import asyncpg
import pytest
from sqlalchemy import event

from app.services import Services
from app.templating.expressions import Expressions, Source
from db import connection_use
from tests.agents.tools.tool_requests import create_tool
from tests.automation.workflows.factories import PATH, create_workflow, transform
from tests.data.tables.api import create_table
from tests.messaging.notifications.factories import create_channel
from tests.world import Client

# Set in the context of a request. A worker of another test may run statements meanwhile.
_is_counted: ContextVar[bool] = ContextVar("is_counted", default=False)
_NODES = [transform("a", "{{ input.a }}")]


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of connections that the request holds, at each check of expressions."""
    counts, check = list[int](), Expressions.check

    async def count(
        expressions: Expressions, sources: Sequence[Source], *names: Any, **options: Any
    ) -> Any:
        counts.append(connection_use.current().held)
        return await check(expressions, sources, *names, **options)

    monkeypatch.setattr(Expressions, "check", count)
    return counts


async def test_no_connection_is_held_while_expressions_are_checked(
    developer: Client, connections: list[int], subtests: pytest.Subtests
) -> None:
    counts = connections
    path = f"{PATH}/{(await create_workflow(developer, [transform('a', 1)]))['id']}"
    body = {"name": "Orders", "nodes": _NODES}
    update = {"action": "update", "id": path.rpartition("/")[2], "data": body}
    for name, method, url, data in (
        ("create", developer.post, PATH, body),
        ("update", developer.put, path, body),
        ("restore", developer.post, f"{path}/versions/2/restore", None),
        ("batch", developer.post, "/v1/workflows/batch", {"operations": [update, update]}),
    ):
        with subtests.test(name):
            counts.clear()
            answer = await method(url, data)
            assert answer.status_code in {200, 201}, answer.text
            assert counts
            assert set(counts) == {0}


async def test_a_batch_names_the_expressions_of_each_operation(developer: Client) -> None:
    workflow = await create_workflow(developer, _NODES)
    wrong = [transform("a", "{{ unknown }}")]
    right = [{"id": "b", "type": "delay", "config": {"seconds": 1}, "retry": {"delay_seconds": 2}}]
    operations = [
        {"action": "create", "data": {"name": "Orders", "nodes": wrong}},
        {"action": "update", "id": workflow["id"], "data": {"nodes": wrong}},
        {"action": "update", "id": workflow["id"], "data": {"nodes": right}},
        {"action": "update", "id": workflow["id"], "data": {"nodes": "none"}},
        {"action": "update", "id": workflow["id"], "data": {"edges": [{"from": "b", "to": "b"}]}},
    ]
    answer = await developer.post("/v1/workflows/batch", {"operations": operations})
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [422, 422, 200, 422, 422]
    for result in results[:2]:
        assert set(result["error"]["details"]) == {"nodes.0.config.output"}
    assert set(results[4]["error"]["details"]) == {"edges"}


@contextmanager
def _count_statements(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yields a list that grows by each statement of the requests inside, of the ORM too."""
    statements: list[str] = []

    def count_plain(method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def count(connection: object, sql: str, *args: object, **options: object) -> object:
            if _is_counted.get():
                statements.append(sql)
            return await method(connection, sql, *args, **options)

        return count

    def count_of_orm(_c: object, _cursor: object, sql: str, *_: object) -> None:
        if _is_counted.get():
            statements.append(sql)

    engine = services.db.engine.sync_engine
    with monkeypatch.context() as patched:
        for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
            method = getattr(asyncpg.Connection, name)
            patched.setattr(asyncpg.Connection, name, count_plain(method))
        event.listen(engine, "before_cursor_execute", count_of_orm)
        token = _is_counted.set(True)
        yield statements
        _is_counted.reset(token)
        event.remove(engine, "before_cursor_execute", count_of_orm)


async def _list_configs(client: Client) -> list[tuple[str, dict[str, Any]]]:
    """A config with a reference of each kind."""
    agent = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    agent_id = (await client.post("/api/v1/agents", agent)).json()["id"]
    called = await create_workflow(client, [transform("a", 1)])
    texts = {"title": "Look", "message": "Here"}
    return [
        ("agent", {"agent_id": agent_id, "message": "Hi"}),
        ("tool", {"tool_id": (await create_tool(client))["id"]}),
        ("data_table", {"table_id": (await create_table(client))["id"], "operation": "query"}),
        ("workflow", {"workflow_id": called["id"]}),
        ("notification", {"channel_id": (await create_channel(client))["id"], **texts}),
        ("notification", {"user_ids": [client.user_id], **texts}),
        ("approval", {"user_ids": [client.user_id], "title": "May I?"}),
        ("approval", {"role": "agent_user", "title": "May I?"}),
    ]


async def test_statements_do_not_grow_with_the_nodes(
    admin: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = await _list_configs(admin)
    counts: dict[int, list[int]] = {}
    for copies in (1, 5):
        nodes = [
            {"id": f"n{copy}_{index}", "type": node_type, "config": config}
            for copy in range(copies)
            for index, (node_type, config) in enumerate(configs)
        ]
        workflow = await create_workflow(admin, [transform("a", 1)])
        counts[copies] = []
        path = f"{PATH}/{workflow['id']}"
        for method, url, data in (
            (admin.post, PATH, {"name": "Orders", "nodes": nodes}),
            (admin.put, path, {"nodes": nodes}),
            (admin.post, f"{path}/publish", None),
        ):
            with _count_statements(services, monkeypatch) as statements:
                answer = await method(url, data)
            assert answer.status_code in {200, 201}, answer.text
            counts[copies].append(len(statements))
    assert min(counts[1]) >= len(configs)
    # A request may also have to open a connection or to look up its session.
    for few, many in zip(counts[1], counts[5], strict=True):
        assert many <= few + 2
