"""Definitions are checked in a thread, before the transaction that saves them."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from app.domain.automation.workflows import checks, service
from app.domain.automation.workflows.definitions import Definition
from app.security.principal import Principal
from tests.assertions import refused
from tests.automation.workflows.factories import PATH, create_workflow, edge, transform
from tests.world import Client

_NODES = [transform("a", 1), transform("b", "{{ nodes.a.output }}")]
_BODY = {"name": "Orders", "nodes": _NODES, "edges": [edge("a", "b")]}


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Has True for each check that ran on the event loop."""
    check, on_loop = checks.check_definition, list[bool]()

    def observe(principal: Principal, definition: Definition) -> None:
        on_loop.append(threading.current_thread() is threading.main_thread())
        check(principal, definition)

    monkeypatch.setattr(checks, "check_definition", observe)
    return on_loop


async def test_no_definition_is_checked_on_the_event_loop(
    developer: Client, threads: list[bool], subtests: pytest.Subtests
) -> None:
    workflow = await create_workflow(developer, _NODES, [edge("a", "b")])
    path, change = f"{PATH}/{workflow['id']}", {"nodes": [*_NODES, transform("c", 1)]}
    operations = [
        {"action": "create", "data": _BODY},
        {"action": "update", "id": workflow["id"], "data": {"nodes": _NODES}},
    ]
    requests: dict[str, Callable[[], Awaitable[httpx.Response]]] = {
        "create": lambda: developer.post(PATH, _BODY),
        "update": lambda: developer.put(path, change),
        "update of edges": lambda: developer.put(path, {"edges": [edge("a", "c"), edge("a", "b")]}),
        "restore": lambda: developer.post(f"{path}/versions/1/restore"),
        "batch": lambda: developer.post("/v1/workflows/batch", {"operations": operations}),
    }
    for name, send in requests.items():
        with subtests.test(name):
            threads.clear()
            answer = await send()
            assert answer.status_code < 300, answer.text
            assert threads
            assert not any(threads)


async def test_a_definition_that_changed_meanwhile_is_checked_again(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another request deletes a node between the check and the transaction."""
    workflow = await create_workflow(developer, _NODES, [edge("a", "b")])
    path, check = f"{PATH}/{workflow['id']}", service.check_update

    async def delete_node(*args: Any) -> None:
        await check(*args)
        monkeypatch.setattr(service, "check_update", check)
        change = {"nodes": [transform("a", 1)], "edges": []}
        assert (await developer.put(path, change)).status_code == 200

    monkeypatch.setattr(service, "check_update", delete_node)
    error = refused(await developer.put(path, {"edges": [edge("a", "b")]}), 422, "validation_error")
    assert "edges.0.to" in error["details"]
