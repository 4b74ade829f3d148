"""The demo is created once, and what is deleted of it stays deleted."""

import asyncio

import msgspec
import pytest

from app.crypto.keyring import Keyring
from app.demo import service, shop
from app.settings import Settings
from tests.conversations.embed.factories import create_agent
from tests.database import fetch_rows, run_sql
from tests.demo.instance import Instance

DOCUMENTS = len(list(shop.DOCUMENTS.glob("*.md")))
COMPLETE = {"agents": 1, "embed_keys": 1, "documents": DOCUMENTS, "forms": 1}
NOTHING = dict.fromkeys(COMPLETE, 0)


async def test_the_demo_is_created_once(instance: Instance) -> None:
    for _ in range(2):
        assert await service.ensure(instance.services)
        assert await instance.count() == COMPLETE
    operator = await instance.operator()
    (agent,) = (await operator.get("/api/v1/agents")).json()["data"]
    assert (agent["status"], agent["primary_model"]) == ("published", "local/smollm2")
    (form,) = (await operator.get("/api/v1/forms")).json()["data"]
    assert form["status"] == "published"
    (key,) = (await operator.get("/api/v1/embed/api-keys")).json()["data"]
    # The page is open to everybody, and recordings cost more than texts.
    assert key["allow_voice"] is False


async def test_processes_that_start_at_once_create_one_demo(instance: Instance) -> None:
    other = Instance(instance.settings)
    calls = [service.ensure(item.services) for item in (instance, other) * 3]
    assert await asyncio.gather(*calls) == [True] * len(calls)
    assert await instance.count() == COMPLETE
    await other.services.close()


async def test_what_an_operator_deletes_is_not_created_again(instance: Instance) -> None:
    await service.ensure(instance.services)
    operator = await instance.operator()
    for path in ("/api/v1/agents", "/api/v1/forms"):
        (row,) = (await operator.get(path)).json()["data"]
        assert (await operator.delete(f"{path}/{row['id']}")).is_success
    assert await service.ensure(instance.services)
    assert await instance.count() == NOTHING
    assert (await instance.visitor.get("/demo")).status_code == 404


async def test_nothing_is_created_beside_the_operators_own_agents(instance: Instance) -> None:
    operator = await instance.operator()
    agent_id = await create_agent(operator)
    assert await service.ensure(instance.services)
    assert await instance.count() == {**NOTHING, "agents": 1}
    assert (await instance.visitor.get("/demo")).status_code == 404
    assert (await operator.delete(f"/api/v1/agents/{agent_id}")).is_success
    assert await service.ensure(instance.services)
    assert await instance.count() == NOTHING


async def test_nothing_is_created_before_there_is_a_super_admin(instance: Instance) -> None:
    await run_sql(instance.services, "DELETE FROM users")
    assert not await service.ensure(instance.services)
    assert await instance.count() == NOTHING
    await instance.create_admin()
    assert await service.ensure(instance.services)
    assert await instance.count() == COMPLETE


async def test_documents_that_a_killed_process_has_not_added_are_added(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(service, "_add_documents", _fail)
        with pytest.raises(ConnectionResetError):
            await service.ensure(instance.services)
    assert (await instance.visitor.get("/demo")).status_code == 503
    assert await service.ensure(instance.services)
    assert await instance.count() == COMPLETE


async def _fail(*_: object) -> None:
    raise ConnectionResetError


async def test_a_failure_is_tried_again_until_the_process_stops(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = asyncio.Event()
    monkeypatch.setattr(service, "_FIRST_DELAY", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(service, "ensure", _fail)
        task = asyncio.create_task(service.prepare(instance.services, stopped))
        await asyncio.sleep(0)
    await asyncio.wait_for(task, 10)
    assert await instance.count() == COMPLETE
    stopped.set()
    await asyncio.wait_for(service.prepare(instance.services, stopped), 1)


# The embed key


async def test_the_key_of_the_page_survives_a_rotation_of_the_root_key(instance: Instance) -> None:
    await service.ensure(instance.services)
    before = await instance.scripts()
    old, new = instance.settings.master_keys, Keyring.generate("new")
    rotated = instance.with_keys(new, old)
    await service.ensure(rotated.services)
    assert await rotated.scripts() == before
    # Without the old root key the page has another key, in every process.
    for number, entries in enumerate(((new,), (old, new))):
        process = instance.with_keys(*entries)
        if number == 0:
            await service.ensure(process.services)
        assert await process.scripts() != before
        assert (await process.open_session()).is_success
        await process.services.close()
    assert (await instance.count())["embed_keys"] == 1
    await rotated.services.close()


async def test_a_root_key_that_is_removed_from_a_running_process_is_replaced(
    instance: Instance,
) -> None:
    await service.ensure(instance.services)
    process = instance.with_keys(Keyring.generate("new"))
    assert (await process.open_session()).is_success
    await process.services.close()


async def test_a_revoked_key_is_not_created_again(instance: Instance) -> None:
    await service.ensure(instance.services)
    operator = await instance.operator()
    (key,) = (await operator.get("/api/v1/embed/api-keys")).json()["data"]
    assert (await operator.delete(f"/api/v1/embed/api-keys?id={key['id']}")).is_success
    process = instance.with_keys(Keyring.generate("new"))
    for item in (instance, process):
        await service.ensure(item.services)
        assert list(await item.scripts()) == ["/embed/form.js"]
    assert (await instance.count())["embed_keys"] == 0
    await process.services.close()


async def test_the_key_is_in_no_table(instance: Instance) -> None:
    await service.ensure(instance.services)
    api_key = (await instance.scripts())["/embed/widget.js"]["data-api-key"]
    rows = await fetch_rows(instance.services, "SELECT value FROM instance_state")
    rows += await fetch_rows(instance.services, "SELECT embed_keys::text FROM embed_keys")
    assert api_key not in str(rows)


@pytest.mark.parametrize(
    ("url", "origins"),
    [
        ("https://parley.example.com", ["https://parley.example.com"]),
        ("https://example.com:8443/chat/", ["https://example.com:8443"]),
        (
            "http://localhost:8000",
            ["http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"],
        ),
        ("http://0.0.0.0", ["http://127.0.0.1", "http://localhost", "http://[::1]"]),
        (
            "http://[::1]:9000",
            ["http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000"],
        ),
    ],
)
def test_the_key_is_for_the_origin_of_the_instance(url: str, origins: list[str]) -> None:
    settings = msgspec.structs.replace(Settings(), base_url=url)
    assert service.list_origins(settings) == origins
