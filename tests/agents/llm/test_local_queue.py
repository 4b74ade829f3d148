"""The queue for the local model: fair between tenants, across processes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec
import pytest

from app.domain.agents.llm import local_queue
from app.domain.agents.llm.errors import ModelBusy
from app.domain.agents.llm.gateway import LOCAL_MODEL, Models
from app.domain.agents.llm.protocol import ModelRequest, QueueLimits, QueuePosition, Target, Text
from app.kit.redis import connect
from app.net.egress import Guard
from app.observe import heartbeat
from app.services import Services
from tests.agents.llm.answers import StepHold, make_request, read_parts, scripted_target, text_of
from tests.agents.llm.local_model import announce_local_model, wait_for_tickets
from tests.assertions import until
from tests.model_server import ModelServer, Reply
from tests.ports import free_port
from tests.preloaded import PreloadedProcess

LOCAL_TARGET = Target(LOCAL_MODEL, "local")
# Takes a slot and answers nothing until it is killed.
_HOLDER = """
import asyncio, sys
from app.domain.agents.llm import local_queue
from app.domain.agents.llm.protocol import QueueLimits
from app.observe.heartbeat import Beat
from app.kit.redis import connect

async def hold():
    local_queue.SLOT_LEASE_SECONDS = 0.5
    local_queue._RENEW_SECONDS = 0.1
    queue = local_queue.LocalQueue(connect(sys.argv[1]))
    ticket = queue.create_ticket(Beat("model", sys.argv[2], slots=1), "killed", QueueLimits())
    async for _ in ticket.wait():
        pass
    await asyncio.sleep(60)

asyncio.run(hold())
"""


class Line(msgspec.Struct):
    """Requests of several tenants to a local model with two slots, from two processes."""

    gateways: list[Models]
    models: ModelServer
    hold: StepHold
    tasks: list[asyncio.Task[list[object]]] = []

    def ask(self, tenant_id: str, **limits: object) -> asyncio.Task[list[object]]:
        gateway = self.gateways[len(self.tasks) % len(self.gateways)]
        task = asyncio.create_task(_read(gateway, tenant_id, **limits))
        self.tasks.append(task)
        return task

    @property
    def served(self) -> list[str]:
        """The tenants of the requests that have reached the model, in their order."""
        return [item["messages"][0]["content"] for item in self.models.asked(LOCAL_MODEL)]

    async def wait_for(self, count: int) -> None:
        await until(lambda: len(self.served) == count)


async def _read(gateway: Models, tenant_id: str, **limits: object) -> list[object]:
    request = _request(tenant_id, **limits)
    return list(await read_parts(gateway, LOCAL_TARGET, request))


def _request(tenant_id: str, **limits: object) -> ModelRequest:
    queue = msgspec.convert(limits, QueueLimits)
    request = make_request(tenant_id=tenant_id, queue=queue)
    message = msgspec.structs.replace(request.messages[0], content=tenant_id)
    return msgspec.structs.replace(request, messages=[message])


@pytest.fixture
async def line(services: Services, models: ModelServer) -> AsyncIterator[Line]:
    line = Line(
        [Models(Guard(()), services.redis, has_local=True) for _ in "ab"], models, StepHold()
    )
    models.requests.clear()
    models.script(LOCAL_MODEL, Reply(texts=["Done"], hold=line.hold))
    async with announce_local_model(services, models.url, slots=2):
        yield line
        for task in line.tasks:
            task.cancel()
        await asyncio.gather(*line.tasks, return_exceptions=True)
        for gateway in line.gateways:
            await gateway.close()


async def test_a_tenant_gets_the_next_slot_before_another_gets_its_second(
    line: Line, services: Services
) -> None:
    """One tenant may use both slots while no other waits."""
    for _ in range(8):
        line.ask("many")
    await line.wait_for(2)
    await wait_for_tickets(services, 8)
    line.ask("one")
    await wait_for_tickets(services, 9)
    line.hold.release()
    await line.wait_for(3)
    assert line.served == ["many", "many", "one"]
    line.ask("other")
    await wait_for_tickets(services, 9)
    # The last answer of the first two ends: neither tenant has a slot, and one waits for longer.
    line.hold.release()
    await line.wait_for(4)
    # The answer to the single request ends.
    line.hold.release()
    await line.wait_for(5)
    assert line.served[3:] == ["many", "other"]


async def test_a_request_learns_its_position(line: Line, services: Services) -> None:
    served = [line.ask("many") for _ in range(2)]
    await line.wait_for(2)
    for _ in range(2):
        line.ask("many")
    await wait_for_tickets(services, 4)
    waiting = line.ask("one")
    await wait_for_tickets(services, 5)
    last = line.ask("many")
    await wait_for_tickets(services, 6)
    for _ in range(6):
        line.hold.release()
    parts = await asyncio.wait_for(waiting, 10)
    assert parts[:3] == [QueuePosition(1), QueuePosition(0), Text("Done")]
    positions = [part.position for part in await last if isinstance(part, QueuePosition)]
    # The other two of its tenant and the one before it.
    assert positions[0] == 4
    assert positions == sorted(positions, reverse=True)
    assert positions[-1] == 0
    # What does not wait has no position.
    for task in served:
        assert not [part for part in await task if isinstance(part, QueuePosition)]


async def test_a_full_queue_refuses_at_once(
    line: Line, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        line.ask("many", places=3)
    await wait_for_tickets(services, 5)
    with pytest.raises(ModelBusy) as caught:
        await asyncio.wait_for(line.ask("many", places=3), 2)
    assert (caught.value.status, caught.value.code) == (503, "unavailable")
    assert caught.value.headers == {"Retry-After": "10"}
    assert "local model is busy" in caught.value.message
    # Another tenant has places of its own, as long as there are any.
    line.ask("one", places=3)
    await wait_for_tickets(services, 6)
    monkeypatch.setattr(local_queue, "MAX_PLACES", 4)
    with pytest.raises(ModelBusy):
        await asyncio.wait_for(line.ask("other"), 2)


async def test_a_request_waits_for_a_limited_time(line: Line, services: Services) -> None:
    for _ in range(2):
        line.ask("many")
    await line.wait_for(2)
    limits = {"seconds": 0.3, "places": 0, "waits_for_place": True}
    for late in (line.ask("one", seconds=0.3), line.ask("two", **limits)):
        with pytest.raises(ModelBusy):
            await asyncio.wait_for(late, 5)
    await wait_for_tickets(services, 2)


async def test_a_caller_that_leaves_frees_its_slot_and_its_place(
    line: Line, services: Services
) -> None:
    running = [line.ask("many") for _ in range(2)]
    await line.wait_for(2)
    first, second = line.ask("one"), line.ask("two")
    await wait_for_tickets(services, 4)
    first.cancel()
    await wait_for_tickets(services, 3)
    running[0].cancel()
    await line.wait_for(3)
    assert line.served[2] == "two"
    line.hold.release()
    line.hold.release()
    assert text_of(await second) == "Done"  # type: ignore[arg-type]


async def test_a_process_that_was_killed_loses_its_slot(
    services: Services, models: ModelServer, line: Line
) -> None:
    async with announce_local_model(services, models.url, slots=1):
        name = heartbeat.own_name()
        arguments = ("-c", _HOLDER, services.settings.redis_address, name)
        holder = PreloadedProcess(*arguments, env=dict(os.environ))
        try:
            await wait_for_tickets(services, 1)
            waiting = line.ask("one")
            await wait_for_tickets(services, 2)
            # Longer than its lease, which it renews.
            await asyncio.sleep(0.6)
            assert line.served == []
        finally:
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait(10)
        line.hold.release()
        assert text_of(await asyncio.wait_for(waiting, 5)) == "Done"  # type: ignore[arg-type]


async def test_a_slot_is_kept_while_its_answer_lasts(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_queue, "SLOT_LEASE_SECONDS", 0.3)
    monkeypatch.setattr(local_queue, "_RENEW_SECONDS", 0.05)
    for _ in range(3):
        line.ask("many")
    await line.wait_for(2)
    await asyncio.sleep(0.6)
    assert len(line.served) == 2


async def test_requests_go_straight_to_the_model_without_redis(
    line: Line, services: Services, models: ModelServer
) -> None:
    gateway = Models(Guard(()), services.redis, has_local=True)
    assert await gateway.local_address() == models.url
    gateway._queue = local_queue.LocalQueue(connect(f"redis://127.0.0.1:{free_port()}"))
    for _ in range(3):
        line.hold.release()
    answers = await asyncio.gather(*(_read(gateway, "many") for _ in range(3)))
    assert [text_of(parts) for parts in answers] == ["Done"] * 3  # type: ignore[arg-type]
    await gateway.close()


async def test_other_models_do_not_ask_redis(services: Services, models: ModelServer) -> None:
    redis = connect(f"redis://127.0.0.1:{free_port()}")
    gateway = Models(Guard(("127.0.0.1",)), redis, has_local=True)
    target = scripted_target(models, "remote-model")
    async with aclosing(gateway.answer(target, make_request())) as parts:
        assert text_of([part async for part in parts]) == "Hello there"
    assert redis.connection_pool._available_connections == []
    await gateway.close()


async def test_an_answer_is_no_longer_than_the_window(line: Line, models: ModelServer) -> None:
    line.hold.release()
    request = make_request(max_tokens=100_000)
    await read_parts(line.gateways[0], LOCAL_TARGET, request)
    assert models.asked(LOCAL_MODEL)[0]["max_tokens"] == 4096
