"""Requests that wait for the processes of expressions hold no connection."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import httpx
import pytest
from sqlalchemy.pool import QueuePool

from app.services import Services
from app.templating.expressions.pool import ProcessPool
from tests.assertions import until
from tests.world import Client

_TEMPLATE = "{{ input.name }}"


def _body(*templates: str) -> dict[str, Any]:
    nodes = [
        {"id": f"n{index}", "type": "transform", "config": {"output": text}}
        for index, text in enumerate(templates)
    ]
    return {"name": "Waits", "nodes": nodes, "edges": []}


class _HeldPool:
    """Lets no evaluation begin before `may_go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go = asyncio.Event()
        self.waiting = 0
        ask = ProcessPool.ask

        async def wait(pool: ProcessPool, *arguments: Any) -> bytes:
            self.waiting += 1
            await self.may_go.wait()
            return await ask(pool, *arguments)

        monkeypatch.setattr(ProcessPool, "ask", wait)


async def _create(client: Client) -> str:
    workflow_id: str = (await client.post("/api/v1/workflows", _body(_TEMPLATE))).json()["data"][
        "id"
    ]
    return workflow_id


async def test_no_connection_is_held_while_expressions_wait(
    services: Services,
    developer: Client,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    workflow_id = await _create(developer)
    path = f"/api/v1/workflows/{workflow_id}"
    batch = {"operations": [{"action": "create", "data": _body(_TEMPLATE)}]}
    pool = cast("QueuePool", services.db.engine.sync_engine.pool)
    requests: dict[str, Callable[[dict[str, str]], Awaitable[httpx.Response]]] = {
        "create": lambda key: developer.post("/api/v1/workflows", _body(_TEMPLATE), headers=key),
        "restore": lambda key: developer.post(f"{path}/versions/1/restore", headers=key),
        "dry run": lambda key: developer.post(f"{path}/execute", {"dry_run": True}, headers=key),
        "batch": lambda key: developer.post("/v1/workflows/batch", batch, headers=key),
    }
    for name, send in requests.items():
        with subtests.test(name), monkeypatch.context() as patch:
            held = _HeldPool(patch)
            calls = [
                asyncio.ensure_future(send({"idempotency-key": f"{name} {number}"}))
                for number in range(6)
            ]
            await until(lambda: held.waiting == len(calls))  # noqa: B023
            await until(lambda: pool.checkedout() == 0)
            assert (await developer.get("/api/v1/agents")).status_code == 200
            held.may_go.set()
            assert {answer.status_code for answer in await asyncio.gather(*calls)} <= {200, 201}


async def test_requests_with_one_key_that_wait_have_one_effect(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them pass the check of their expressions before the first one stores anything."""
    held = _HeldPool(monkeypatch)
    headers = {"idempotency-key": "one"}
    calls = [
        asyncio.create_task(developer.post("/api/v1/workflows", _body(_TEMPLATE), headers=headers))
        for _ in range(4)
    ]
    await until(lambda: held.waiting == len(calls))
    held.may_go.set()
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 3
