"""What saving a workflow costs: connections and statements."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from sqlalchemy.pool import QueuePool

from app.kit.expressions import Expressions, Source
from app.services import Services
from tests.workflows.factories import PATH, create_workflow, transform
from tests.world import Client

_NODES = [transform("a", "{{ input.a }}")]


@pytest.fixture
def connections(services: Services, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of connections in use, at each check of expressions."""
    pool, counts = cast("QueuePool", services.db.engine.sync_engine.pool), list[int]()
    check = Expressions.check

    async def count(
        expressions: Expressions, sources: Sequence[Source], *names: Any, **options: Any
    ) -> Any:
        counts.append(pool.checkedout())
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
    operations = [
        {"action": "create", "data": {"name": "Orders", "nodes": wrong}},
        {"action": "update", "id": workflow["id"], "data": {"nodes": wrong}},
        {"action": "update", "id": workflow["id"], "data": {"nodes": [transform("b", 1)]}},
        {"action": "update", "id": workflow["id"], "data": {"nodes": "none"}},
        {"action": "update", "id": workflow["id"], "data": {"edges": [{"from": "b", "to": "b"}]}},
    ]
    answer = await developer.post("/v1/workflows/batch", {"operations": operations})
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [422, 422, 200, 422, 422]
    for result in results[:2]:
        assert set(result["error"]["details"]) == {"nodes.0.config.output"}
    assert set(results[4]["error"]["details"]) == {"edges"}
