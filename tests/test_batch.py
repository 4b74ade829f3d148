"""Batches of any area: the functions that operations call, permissions, and failures."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.domain import batch
from app.domain.batch import Functions, Operation
from app.kit.errors import Conflict, NotFound
from app.security.principal import Principal
from app.services import Services
from db.session import Tx
from tests.world import World


class Thing(msgspec.Struct):
    name: str


class ThingChange(msgspec.Struct):
    size: int


class Things:
    """An area that records the calls of its functions."""

    def __init__(self, tx: Tx) -> None:
        self.calls: list[Any] = []
        self.tx = tx
        self.functions = Functions(
            noun="a thing",
            permissions={"create": "things:add", "update": "things:edit", "delete": "things:drop"},
            view=Thing,
            new=Thing,
            change=ThingChange,
            create=self._create,
            lock=self._lock,
            update=self._update,
            delete=self._delete,
        )

    async def _lock(self, thing_id: str) -> Thing:
        raise NotFound(f"There is no thing {thing_id}")

    async def _create(self, new: Thing) -> Thing:
        self.tx.wake("events.fan_out", "wrk_none")
        if new.name == "taken":
            raise Conflict("There is one already")
        if new.name == "broken":
            raise ZeroDivisionError
        self.calls.append(new)
        return new

    async def _update(self, thing_id: str, change: ThingChange) -> Thing:
        self.calls.append((thing_id, change))
        return Thing(thing_id)

    async def _delete(self, thing_id: str) -> None:
        self.calls.append(thing_id)

    async def run(
        self, *operations: Operation, permissions: str = "add edit drop"
    ) -> list[dict[str, Any]]:
        keys = frozenset(f"things:{name}" for name in permissions.split())
        principal = Principal("usr_1", "ten_1", "viewer", "ses_1", keys)
        results = await batch.run(self.tx, principal, self.functions, list(operations))
        built: list[dict[str, Any]] = msgspec.to_builtins(results)
        return built


@pytest.fixture
async def things(services: Services, world: World) -> AsyncIterator[Things]:
    async with services.db.tx(await world.tenant()) as tx:
        yield Things(tx)
        await tx.rollback()


_CREATE = Operation(action="create", data={"name": "A"})
_UPDATE = Operation(action="update", id="1", data={"size": 2})
_DELETE = Operation(action="delete", id="2")


async def test_each_action_calls_its_function_with_its_struct(things: Things) -> None:
    assert await things.run(_CREATE, _UPDATE, _DELETE) == [
        {"index": 0, "status": 201, "data": {"name": "A"}},
        {"index": 1, "status": 200, "data": {"name": "1"}},
        {"index": 2, "status": 204},
    ]
    assert things.calls == [Thing("A"), ("1", ThingChange(2)), "2"]


async def test_each_action_needs_its_permission(things: Things, subtests: pytest.Subtests) -> None:
    for permission, statuses in (
        ("add", [201, 403, 403]),
        ("edit", [403, 200, 403]),
        ("drop", [403, 403, 204]),
    ):
        with subtests.test(permission=permission):
            results = await things.run(_CREATE, _UPDATE, _DELETE, permissions=permission)
            assert [result["status"] for result in results] == statuses


async def test_a_message_names_the_resource(things: Things) -> None:
    operations = (Operation(action="create"), Operation(action="delete"))
    errors = [result["error"]["details"] for result in await things.run(*operations)]
    assert errors == [
        {"data": "is required to create a thing"},
        {"id": "is required to delete a thing"},
    ]


async def test_a_refused_operation_wakes_no_worker(services: Services, things: Things) -> None:
    tx = things.tx
    taken = Operation(action="create", data={"name": "taken"})
    (result,) = await things.run(taken)
    assert (result["status"], result["error"]["code"]) == (409, "conflict")
    assert tx.after_commit == []
    await things.run(_CREATE)
    assert len(tx.after_commit) == 1


async def test_an_internal_failure_fails_the_whole_batch(things: Things) -> None:
    broken = Operation(action="create", data={"name": "broken"})
    with pytest.raises(ZeroDivisionError):
        await things.run(_CREATE, broken)
