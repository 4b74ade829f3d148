"""Rotation of a webhook's secret, and of the root key that seals it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from app import bootstrap
from app.crypto import key_file, rotation
from app.crypto.keyring import CannotOpen, Keyring
from app.domain.messaging.deliveries import endpoint_keys
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from app.kit import clock
from app.kit.ids import new_id
from app.main import create_app
from app.services import Services
from app.settings import Settings
from tests.assertions import refused
from tests.database import run_sql
from tests.messaging.deliveries.receiver import ReceivedRequest, Receiver
from tests.messaging.deliveries.signatures import compute_signature
from tests.messaging.webhooks.factories import (
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
from tests.platform.events.factories import create_agent
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.world import Client, World
from workers.main import WorkerProcess

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_EXPIRE_PREVIOUS = "UPDATE webhooks SET previous_until = now() - interval '1 second' WHERE id = $1"


def _verifies(secret: str, request: ReceivedRequest) -> bool:
    """True if a receiver with this secret accepts the request."""
    try:
        Webhook(secret).verify(request.body, dict(request.headers))
    except WebhookVerificationError:
        return False
    return True


async def _send_test(client: Client, webhook_id: str, receiver: Receiver) -> ReceivedRequest:
    await send_test_event(client, webhook_id)
    return receiver.requests[-1]


# Which secrets sign


_EXPIRIES: list[tuple[str | None, datetime | None, list[str]]] = [
    (None, None, ["new"]),
    (None, NOON + timedelta(hours=1), ["new"]),
    ("old", None, ["new"]),
    ("old", NOON + timedelta(microseconds=1), ["new", "old"]),
    ("old", NOON, ["new"]),
    ("old", NOON - timedelta(days=1), ["new"]),
]


def test_the_previous_secret_signs_until_it_expires(subtests: pytest.Subtests) -> None:
    for previous, until, expected in _EXPIRIES:
        with subtests.test(previous=previous, until=until), clock.frozen(NOON):
            assert EndpointKeys("new", previous).signing_secrets(until) == expected


# Through the API


async def test_rotating_returns_a_new_secret_and_when_the_previous_one_expires(
    developer: Client,
) -> None:
    webhook = await create_webhook(developer, headers={"X-Team": "a"})
    with clock.frozen(clock.now()):
        rotated = await rotate_secret(developer, webhook["id"])
        until = clock.now() + timedelta(hours=24)
    assert set(rotated) == VIEW_KEYS | {"secret"}
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != webhook["secret"]
    assert datetime.fromisoformat(rotated["previous_secret_expires_at"]) == until
    same = VIEW_KEYS - {"previous_secret_expires_at", "secrets_updated_at", "updated_at"}
    assert {name: rotated[name] for name in same} == {name: webhook[name] for name in same}
    stored = await read_webhook(developer, webhook["id"])
    assert stored["previous_secret_expires_at"] == rotated["previous_secret_expires_at"]


async def test_both_secrets_sign_for_a_day(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    rotated = await rotate_secret(developer, webhook["id"])
    await create_agent(developer)
    (request,) = await receiver.wait_for(1)
    assert request.headers["X-Service-Signature"] == compute_signature(rotated["secret"], request)
    assert request.headers["X-Service-Signature-Previous"] == compute_signature(
        webhook["secret"], request
    )
    first, second = request.headers["webhook-signature"].split(" ")
    for secret, alone in ((rotated["secret"], first), (webhook["secret"], second)):
        assert _verifies(secret, request)
        request.headers["webhook-signature"] = alone
        assert _verifies(secret, request)
        request.headers["webhook-signature"] = f"{first} {second}"


async def test_after_a_day_the_previous_secret_does_not_sign(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    rotated = await rotate_secret(developer, webhook["id"])
    await run_sql(services, _EXPIRE_PREVIOUS, webhook["id"])
    request = await _send_test(developer, webhook["id"], receiver)
    assert "X-Service-Signature-Previous" not in request.headers
    assert " " not in request.headers["webhook-signature"]
    assert (_verifies(rotated["secret"], request), _verifies(webhook["secret"], request)) == (
        True,
        False,
    )
    assert (await read_webhook(developer, webhook["id"]))["previous_secret_expires_at"] is None


async def test_of_three_secrets_the_last_two_sign(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    second = await rotate_secret(developer, webhook["id"])
    third = await rotate_secret(developer, webhook["id"])
    request = await _send_test(developer, webhook["id"], receiver)
    assert request.headers["X-Service-Signature"] == compute_signature(third["secret"], request)
    assert request.headers["X-Service-Signature-Previous"] == compute_signature(
        second["secret"], request
    )
    verified = [_verifies(view["secret"], request) for view in (webhook, second, third)]
    assert verified == [False, True, True]
    assert third["previous_secret_expires_at"] > second["previous_secret_expires_at"]


async def test_rotating_at_the_same_time_loses_no_secret(
    developer: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    rotated = await asyncio.gather(*(rotate_secret(developer, webhook["id"]) for _ in range(2)))
    keys = await unseal_keys(services, developer, webhook["id"])
    assert {keys.secret, keys.previous} == {view["secret"] for view in rotated}


async def test_the_same_idempotency_key_rotates_once(developer: Client, services: Services) -> None:
    webhook = await create_webhook(developer)
    headers = {"Idempotency-Key": new_id("key")}
    path = f"{PATH}/{webhook['id']}/rotate-secret"
    answers = [await developer.post(path, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert (await unseal_keys(services, developer, webhook["id"])).previous == webhook["secret"]


async def test_an_attempt_after_the_rotation_is_signed_with_both(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    receiver.scripts["rotated"] = [500, 200]
    webhook = await create_webhook(developer, url=f"{receiver.url}/script/rotated")
    await create_agent(developer)
    delivery = await wait_for_attempt(developer, webhook["id"])
    rotated = await rotate_secret(developer, webhook["id"])
    await developer.post(f"{PATH}/{webhook['id']}/executions/{delivery['id']}/redeliver")
    first, second = await receiver.wait_for(2)
    assert "X-Service-Signature-Previous" not in first.headers
    assert second.headers["X-Service-Signature"] == compute_signature(rotated["secret"], second)
    assert second.headers["X-Service-Signature-Previous"] == compute_signature(
        webhook["secret"], second
    )


async def test_the_secrets_of_other_webhooks_stay(developer: Client, services: Services) -> None:
    webhook, other = [await create_webhook(developer) for _ in range(2)]
    await rotate_secret(developer, webhook["id"])
    assert await unseal_keys(services, developer, other["id"]) == EndpointKeys(other["secret"])


async def test_the_secret_of_an_inactive_webhook_can_be_rotated(developer: Client) -> None:
    webhook = await create_webhook(developer, active=False)
    assert (await rotate_secret(developer, webhook["id"]))["active"] is False


async def test_the_event_of_a_rotation_has_no_secret(developer: Client) -> None:
    webhook = await create_webhook(developer, url="https://example.com/hook?key=planted")
    await rotate_secret(developer, webhook["id"])
    (event,) = await list_events(developer, "system.webhook.updated")
    assert event["data"] == {
        "webhook_id": webhook["id"],
        "url": "https://example.com",
        "changed": ["secret"],
    }


async def test_a_deleted_webhook_cannot_be_rotated(developer: Client) -> None:
    webhook = await create_webhook(developer)
    await developer.delete(f"{PATH}/{webhook['id']}")
    answer = await developer.post(f"{PATH}/{webhook['id']}/rotate-secret")
    refused(answer, 404, "webhook_not_found")


# Secrets whose root key is lost


async def _seal_with_lost_key(services: Services, client: Client, webhook_id: str) -> None:
    keyring = Keyring.parse(Keyring.generate("lost"))
    sealed = endpoint_keys.seal(keyring, client.tenant_id, webhook_id, EndpointKeys("whsec_AAAA"))
    await run_sql(services, "UPDATE webhooks SET keys = $2 WHERE id = $1", webhook_id, sealed)


async def test_a_delivery_whose_secret_cannot_be_unsealed_fails(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    await _seal_with_lost_key(services, developer, webhook["id"])
    delivery = await send_test_event(developer, webhook["id"])
    assert (delivery["status"], delivery["response_code"]) == ("failed", None)
    assert "cannot be decrypted" in delivery["error"]
    assert receiver.requests == []
    assert (await read_webhook(developer, webhook["id"]))["headers"] == {}


async def test_rotating_replaces_a_secret_that_cannot_be_unsealed(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    await _seal_with_lost_key(services, developer, webhook["id"])
    rotated = await rotate_secret(developer, webhook["id"])
    request = await _send_test(developer, webhook["id"], receiver)
    assert request.headers["X-Service-Signature"] == compute_signature(rotated["secret"], request)
    assert _verifies(rotated["secret"], request)


# A new root key, as after `parley keys rotate`, in a separate database


NEW_KEY = Keyring.generate("new")
NEW_KEYRING = Keyring.parse(NEW_KEY)


@pytest.fixture(scope="module")
async def own_settings(stores: Stores) -> Settings:
    """Settings with a database of their own: a rotation changes every row."""
    return await stores.create_database()


@pytest.fixture
async def old_key_world(own_settings: Settings) -> AsyncIterator[World]:
    world = World(create_app(own_settings))
    await bootstrap.prepare(world.services.db, world.services.keyring, "enterprise")
    yield world
    await world.services.close()


@asynccontextmanager
async def _run_with_new_key(own_settings: Settings) -> AsyncIterator[World]:
    """The same database with a server and a worker that have only the new key."""
    settings = msgspec.structs.replace(own_settings, master_keys=NEW_KEY)
    world = World(create_app(settings))
    async with run_worker(settings, "deliveries"):
        yield world
    await world.services.close()


async def test_secrets_and_headers_survive_a_new_root_key(
    own_settings: Settings, old_key_world: World, receiver: Receiver
) -> None:
    developer = await old_key_world.user()
    webhook = await create_webhook(
        developer, url=f"{receiver.url}/200", headers={"Authorization": "Bearer stored"}
    )
    rotated = await rotate_secret(developer, webhook["id"])
    sql = "SELECT keys FROM webhooks WHERE id = $1"
    (row,) = await run_sql(old_key_world.services, sql, webhook["id"])
    with pytest.raises(CannotOpen):
        endpoint_keys.unseal(NEW_KEYRING, developer.tenant_id, webhook["id"], row["keys"])
    settings = msgspec.structs.replace(
        own_settings, master_keys=f"{NEW_KEY},{own_settings.master_keys}"
    )
    counts = await rotation.rotate_to_new_key(
        settings, old_key_world.services.db, key_file.load(settings), lambda _line: None
    )
    assert counts["webhooks.keys"] == {"new": 1}
    async with _run_with_new_key(own_settings) as new_key_world:
        caller = await new_key_world.user(tenant_id=developer.tenant_id)
        request = await _send_test(caller, webhook["id"], receiver)
    assert request.headers["Authorization"] == "Bearer stored"
    assert request.headers["X-Service-Signature"] == compute_signature(rotated["secret"], request)
    assert request.headers["X-Service-Signature-Previous"] == compute_signature(
        webhook["secret"], request
    )


async def test_keys_sealed_for_another_webhook_cannot_be_unsealed(
    developer: Client, services: Services
) -> None:
    first, second = [await create_webhook(developer) for _ in range(2)]
    sql = "SELECT keys FROM webhooks WHERE id = $1"
    (row,) = await run_sql(services, sql, first["id"])
    with pytest.raises(CannotOpen):
        endpoint_keys.unseal(services.keyring, developer.tenant_id, second["id"], row["keys"])
    with pytest.raises(CannotOpen):
        endpoint_keys.unseal(services.keyring, "ten_other", first["id"], row["keys"])


async def test_a_replaced_secret_or_header_changes_the_tag_of_the_webhook(
    developer: Client, subtests: pytest.Subtests
) -> None:
    webhook = await create_webhook(developer, headers={"Authorization": "Bearer one"})
    path = f"{PATH}/{webhook['id']}"
    for change in ("secret", "header"):
        with subtests.test(change=change):
            tag = {"if-match": (await developer.get(path)).headers["etag"]}
            if change == "secret":
                await rotate_secret(developer, webhook["id"])
            else:
                body = {"headers": {"Authorization": "Bearer two"}}
                assert (await developer.put(path, body)).status_code == 200
            stale = await developer.put(path, {"description": "Mine"}, headers=tag)
            assert (
                "secrets_updated_at"
                in refused(stale, 412, "precondition_failed")["details"]["changed"]
            )
