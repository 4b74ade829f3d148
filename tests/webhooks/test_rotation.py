"""A webhook's secret is rotated: for a day both sign, and a new root key changes neither."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import msgspec
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from app import bootstrap, container
from app.domain.deliveries import endpoint_keys
from app.domain.deliveries.endpoint_keys import EndpointKeys
from app.kit import clock, rotation
from app.kit.crypto import CannotOpen, Keyring
from app.kit.ids import new_id
from app.main import create_app
from app.services import Services
from app.settings import Settings
from db import migrate
from tests.asking import refused
from tests.deliveries.receiver import ReceivedRequest, Receiver
from tests.events.database import run_sql
from tests.events.factories import create_agent
from tests.stores import Stores
from tests.webhooks.factories import (
    PATH,
    VIEW_KEYS,
    create_webhook,
    list_events,
    read_webhook,
    rotate_secret,
    send_test_event,
    unseal_keys,
    wait_for_attempt,
)
from tests.world import Client, World
from workers.main import WorkerProcess

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENDED = "UPDATE webhooks SET previous_until = now() - interval '1 second' WHERE id = $1"


def _signed(secret: str, got: ReceivedRequest) -> str:
    content = got.headers["X-Service-Timestamp"].encode() + b"." + got.body
    return "sha256=" + hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def _verifies(secret: str, got: ReceivedRequest) -> bool:
    try:
        Webhook(secret).verify(got.body, dict(got.headers))
    except WebhookVerificationError:
        return False
    return True


async def _tried(client: Client, webhook_id: str, receiver: Receiver) -> ReceivedRequest:
    await send_test_event(client, webhook_id)
    return receiver.requests[-1]


# Which secrets sign


@pytest.mark.parametrize(
    ("previous", "until", "expected"),
    [
        (None, None, ["new"]),
        (None, NOON + timedelta(hours=1), ["new"]),
        ("old", None, ["new"]),
        ("old", NOON + timedelta(microseconds=1), ["new", "old"]),
        ("old", NOON, ["new"]),
        ("old", NOON - timedelta(days=1), ["new"]),
    ],
)
def test_the_secret_before_signs_until_its_time_is_over(
    previous: str | None, until: datetime | None, expected: list[str]
) -> None:
    with clock.frozen(NOON):
        assert EndpointKeys("new", previous).signing_secrets(until) == expected


# Over the wire


async def test_the_answer_has_a_new_secret_and_says_how_long_the_old_one_signs(
    developer: Client,
) -> None:
    made = await create_webhook(developer, headers={"X-Team": "a"})
    with clock.frozen(clock.now()):
        renewed = await rotate_secret(developer, made["id"])
        until = clock.now() + timedelta(hours=24)
    assert set(renewed) == VIEW_KEYS | {"secret"}
    assert renewed["secret"].startswith("whsec_")
    assert renewed["secret"] != made["secret"]
    assert datetime.fromisoformat(renewed["previous_secret_expires_at"]) == until
    same = VIEW_KEYS - {"previous_secret_expires_at", "updated_at"}
    assert {name: renewed[name] for name in same} == {name: made[name] for name in same}
    found = await read_webhook(developer, made["id"])
    assert found["previous_secret_expires_at"] == renewed["previous_secret_expires_at"]


async def test_both_secrets_sign_for_a_day(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    renewed = await rotate_secret(developer, made["id"])
    await create_agent(developer)
    (got,) = await receiver.wait_for(1)
    assert got.headers["X-Service-Signature"] == _signed(renewed["secret"], got)
    assert got.headers["X-Service-Signature-Previous"] == _signed(made["secret"], got)
    first, second = got.headers["webhook-signature"].split(" ")
    for secret, alone in ((renewed["secret"], first), (made["secret"], second)):
        assert _verifies(secret, got)
        got.headers["webhook-signature"] = alone
        assert _verifies(secret, got)
        got.headers["webhook-signature"] = f"{first} {second}"


async def test_after_a_day_the_old_secret_signs_no_more(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    renewed = await rotate_secret(developer, made["id"])
    await run_sql(services, ENDED, made["id"])
    got = await _tried(developer, made["id"], receiver)
    assert "X-Service-Signature-Previous" not in got.headers
    assert " " not in got.headers["webhook-signature"]
    assert (_verifies(renewed["secret"], got), _verifies(made["secret"], got)) == (True, False)
    assert (await read_webhook(developer, made["id"]))["previous_secret_expires_at"] is None


async def test_of_three_secrets_the_last_two_sign(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    second = await rotate_secret(developer, made["id"])
    third = await rotate_secret(developer, made["id"])
    got = await _tried(developer, made["id"], receiver)
    assert got.headers["X-Service-Signature"] == _signed(third["secret"], got)
    assert got.headers["X-Service-Signature-Previous"] == _signed(second["secret"], got)
    assert [_verifies(one["secret"], got) for one in (made, second, third)] == [False, True, True]
    assert third["previous_secret_expires_at"] > second["previous_secret_expires_at"]


async def test_rotating_at_the_same_time_loses_no_secret(
    developer: Client, services: Services
) -> None:
    made = await create_webhook(developer)
    both = await asyncio.gather(*(rotate_secret(developer, made["id"]) for _ in range(2)))
    sealed = await unseal_keys(services, developer, made["id"])
    assert {sealed.secret, sealed.previous} == {one["secret"] for one in both}


async def test_the_same_idempotency_key_rotates_once(developer: Client, services: Services) -> None:
    made = await create_webhook(developer)
    headers = {"Idempotency-Key": new_id("key")}
    path = f"{PATH}/{made['id']}/rotate-secret"
    answers = [await developer.post(path, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert (await unseal_keys(services, developer, made["id"])).previous == made["secret"]


async def test_an_attempt_after_the_rotation_is_signed_with_both(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    receiver.scripts["rotated"] = [500, 200]
    made = await create_webhook(developer, url=f"{receiver.url}/script/rotated")
    await create_agent(developer)
    delivery = await wait_for_attempt(developer, made["id"])
    renewed = await rotate_secret(developer, made["id"])
    await developer.post(f"{PATH}/{made['id']}/executions/{delivery['id']}/redeliver")
    first, second = await receiver.wait_for(2)
    assert "X-Service-Signature-Previous" not in first.headers
    assert second.headers["X-Service-Signature"] == _signed(renewed["secret"], second)
    assert second.headers["X-Service-Signature-Previous"] == _signed(made["secret"], second)


async def test_the_secrets_of_others_stay(developer: Client, services: Services) -> None:
    made, other = [await create_webhook(developer) for _ in range(2)]
    await rotate_secret(developer, made["id"])
    assert await unseal_keys(services, developer, other["id"]) == EndpointKeys(other["secret"])


async def test_a_webhook_that_is_off_can_be_rotated(developer: Client) -> None:
    made = await create_webhook(developer, active=False)
    assert (await rotate_secret(developer, made["id"]))["active"] is False


async def test_a_rotation_is_told_without_any_secret(developer: Client) -> None:
    made = await create_webhook(developer, url="https://example.com/hook?key=planted")
    await rotate_secret(developer, made["id"])
    (event,) = await list_events(developer, "system.webhook.updated")
    assert event["data"] == {
        "webhook_id": made["id"],
        "url": "https://example.com",
        "changed": ["secret"],
    }


async def test_a_deleted_webhook_cannot_be_rotated(developer: Client) -> None:
    made = await create_webhook(developer)
    await developer.delete(f"{PATH}/{made['id']}")
    answer = await developer.post(f"{PATH}/{made['id']}/rotate-secret")
    refused(answer, 404, "webhook_not_found")


# Secrets whose root key is lost


LOST = Keyring.parse(Keyring.generate("lost"))


async def _lose(services: Services, client: Client, webhook_id: str) -> None:
    sealed = endpoint_keys.seal(LOST, client.tenant_id, webhook_id, EndpointKeys("whsec_AAAA"))
    sql = "UPDATE webhooks SET keys = $2 WHERE id = $1"
    await run_sql(services, sql, webhook_id, sealed)


async def test_what_cannot_be_opened_is_told_and_not_sent_unsigned(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    await _lose(services, developer, made["id"])
    delivery = await send_test_event(developer, made["id"])
    assert (delivery["status"], delivery["response_code"]) == ("failed", None)
    assert "cannot be opened" in delivery["error"]
    assert receiver.requests == []
    assert (await read_webhook(developer, made["id"]))["headers"] == {}


async def test_a_rotation_makes_it_work_again(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    await _lose(services, developer, made["id"])
    renewed = await rotate_secret(developer, made["id"])
    got = await _tried(developer, made["id"], receiver)
    assert got.headers["X-Service-Signature"] == _signed(renewed["secret"], got)
    assert _verifies(renewed["secret"], got)


# A new root key, as `parley keys rotate` brings it: in a database of its own


NEW = Keyring.generate("new")
ONLY_NEW = Keyring.parse(NEW)


@pytest.fixture(scope="module")
async def own(stores: Stores) -> Settings:
    connection = await asyncpg.connect(stores.postgres.url("postgres"))
    await connection.execute("CREATE DATABASE webhook_keys")
    await connection.close()
    made = msgspec.structs.replace(
        stores.settings, database_url=stores.postgres.url("webhook_keys")
    )
    await migrate.upgrade(made.sqlalchemy_url)
    return made


@pytest.fixture
async def before(own: Settings) -> AsyncIterator[World]:
    world = World(create_app(own))
    await bootstrap.prepare(world.services.db, world.services.keyring, "enterprise")
    yield world
    await world.services.close()


@pytest.fixture
async def after(own: Settings) -> AsyncIterator[World]:
    """The same database, served by a process that knows the new key only, and its worker."""
    settings = msgspec.structs.replace(own, master_keys=NEW)
    world = World(create_app(settings))
    services = container.build(settings)
    process = WorkerProcess(services, ["deliveries"])
    running = asyncio.create_task(process.run())
    yield world
    process.stopped.set()
    await running
    await services.close()
    await world.services.close()


async def test_secrets_and_headers_survive_a_new_root_key(
    own: Settings, before: World, after: World, receiver: Receiver
) -> None:
    developer = await before.user()
    made = await create_webhook(
        developer, url=f"{receiver.url}/200", headers={"Authorization": "Bearer kept"}
    )
    renewed = await rotate_secret(developer, made["id"])
    sql = "SELECT keys FROM webhooks WHERE id = $1"
    (row,) = await run_sql(before.services, sql, made["id"])
    with pytest.raises(CannotOpen):
        endpoint_keys.unseal(ONLY_NEW, developer.tenant_id, made["id"], row["keys"])
    both = Keyring.parse(f"{NEW},{own.master_keys}")
    counts = await rotation.rotate(before.services.db, both, lambda _line: None)
    assert counts["webhooks.keys"] == {"new": 1}
    caller = await after.user(tenant_id=developer.tenant_id)
    got = await _tried(caller, made["id"], receiver)
    assert got.headers["Authorization"] == "Bearer kept"
    assert got.headers["X-Service-Signature"] == _signed(renewed["secret"], got)
    assert got.headers["X-Service-Signature-Previous"] == _signed(made["secret"], got)


async def test_a_sealed_value_moved_to_another_webhook_does_not_open(
    developer: Client, services: Services
) -> None:
    first, second = [await create_webhook(developer) for _ in range(2)]
    sql = "SELECT keys FROM webhooks WHERE id = $1"
    (row,) = await run_sql(services, sql, first["id"])
    with pytest.raises(CannotOpen):
        endpoint_keys.unseal(services.keyring, developer.tenant_id, second["id"], row["keys"])
    with pytest.raises(CannotOpen):
        endpoint_keys.unseal(services.keyring, "ten_other", first["id"], row["keys"])
