"""Signatures of deliveries: known values, and verification by receivers.

The literals come from `openssl dgst -sha256 -hmac` and `-mac HMAC -macopt hexkey:`.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest
import svix.webhooks
from standardwebhooks import webhooks as standard

from app.domain.messaging.deliveries import signing
from app.kit import clock
from tests.messaging.deliveries.receiver import ReceivedRequest, Receiver
from tests.messaging.deliveries.signatures import compute_signature
from tests.messaging.webhooks.factories import (
    PATH,
    create_webhook,
    send_test_event,
    wait_for_attempt,
)
from tests.platform.events.factories import create_agent
from tests.world import Client, World
from workers.main import WorkerProcess

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
PREVIOUS_SECRET = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
TIMESTAMP = 1767268800
BODY = '{"id":"evt_1","type":"agent.created","data":{"name":"Zoë"}}'.encode()
SIGNATURE = "sha256=a495e3815f04ce8009260a705c2d435eae20255db59606d91621be923615ef86"
PREVIOUS_SIGNATURE = "sha256=0ff9562ccfa6d5f8e8335d9db02be33dc160bbc4178c245504a82a7a27701d5a"
EMPTY_BODY_SIGNATURE = "sha256=5fa76bcf0d68e66746dc127f41488686ce103f6da8ca9c40c61bd18643a8116a"
STANDARD_SIGNATURE = "v1,+oLJ8eF7tlPD+7OOG9HTzAcqImZA+yRhvi0GMiFJT2c="
PREVIOUS_STANDARD_SIGNATURE = "v1,wKsHhGyRSAUQcJx5v0CQ8MwY1Cge1H8TmgSQPGzSSdo="
EMPTY_BODY_STANDARD_SIGNATURE = "v1,vrBtMutd4LQjdia4I5rzcT46kbRFuoukSAQQ3GHple8="

# Known values


def test_our_signature_is_keyed_with_the_whole_secret(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, bytes, str]] = [
        (SECRET, BODY, SIGNATURE),
        (PREVIOUS_SECRET, BODY, PREVIOUS_SIGNATURE),
        (SECRET, b"", EMPTY_BODY_SIGNATURE),
    ]
    for secret, body, expected in cases:
        with subtests.test(secret=secret, body=body):
            assert signing.sign(secret, TIMESTAMP, body) == expected


def test_the_standard_signature_is_keyed_with_the_decoded_secret(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, bytes, str]] = [
        (SECRET, BODY, STANDARD_SIGNATURE),
        (PREVIOUS_SECRET, BODY, PREVIOUS_STANDARD_SIGNATURE),
        (SECRET, b"", EMPTY_BODY_STANDARD_SIGNATURE),
    ]
    for secret, body, expected in cases:
        with subtests.test(secret=secret, body=body):
            assert signing.sign_standard(secret, "evt_1", TIMESTAMP, body) == expected


def test_the_published_example_of_standard_webhooks_matches() -> None:
    signed = signing.sign_standard(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_another_secret_time_or_body_gives_another_signature(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, int, bytes]] = [
        (PREVIOUS_SECRET, TIMESTAMP, BODY),
        (SECRET, TIMESTAMP + 1, BODY),
        (SECRET, TIMESTAMP, BODY + b" "),
    ]
    for secret, timestamp, body in cases:
        with subtests.test(secret=secret, timestamp=timestamp, body=body):
            assert signing.sign(secret, timestamp, body) != SIGNATURE
            assert signing.sign_standard(secret, "evt_1", timestamp, body) != STANDARD_SIGNATURE


def test_another_id_gives_another_standard_signature() -> None:
    assert signing.sign_standard(SECRET, "evt_2", TIMESTAMP, BODY) != STANDARD_SIGNATURE


def test_any_bytes_are_signed_as_they_are(subtests: pytest.Subtests) -> None:
    cases: list[bytes] = [b"\x00\xff", b"a.b", b"\r\n", b"x" * 1_000_000]
    for body in cases:
        with subtests.test(body=body):
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            digest = hmac.digest(SECRET.encode(), b"1767268800." + body, hashlib.sha256)
            standard_digest = hmac.digest(key, b"evt_1.1767268800." + body, hashlib.sha256)
            assert signing.sign(SECRET, TIMESTAMP, body) == f"sha256={digest.hex()}"
            encoded = base64.b64encode(standard_digest).decode()
            assert signing.sign_standard(SECRET, "evt_1", TIMESTAMP, body) == f"v1,{encoded}"


def test_one_secret_gives_these_headers() -> None:
    assert signing.build_headers([SECRET], "evt_1", "agent.created", TIMESTAMP, BODY) == {
        "X-Service-Signature": SIGNATURE,
        "X-Service-Timestamp": "1767268800",
        "X-Service-Event-Id": "evt_1",
        "X-Service-Event-Type": "agent.created",
        "webhook-id": "evt_1",
        "webhook-timestamp": "1767268800",
        "webhook-signature": STANDARD_SIGNATURE,
    }


def test_the_previous_secret_signs_second() -> None:
    alone = signing.build_headers([SECRET], "evt_1", "agent.created", TIMESTAMP, BODY)
    assert signing.build_headers(
        [SECRET, PREVIOUS_SECRET], "evt_1", "agent.created", TIMESTAMP, BODY
    ) == {
        **alone,
        "X-Service-Signature-Previous": PREVIOUS_SIGNATURE,
        "webhook-signature": f"{STANDARD_SIGNATURE} {PREVIOUS_STANDARD_SIGNATURE}",
    }


def test_no_two_new_secrets_are_alike() -> None:
    secrets = {signing.new_secret() for _ in range(1000)}
    assert len(secrets) == 1000
    assert {len(base64.b64decode(secret.removeprefix("whsec_"))) for secret in secrets} == {32}


# Requests that a receiver gets


class Verifier(Protocol):
    def verify(self, data: bytes, headers: dict[str, str]) -> Any: ...


VERIFIERS: list[Callable[[str], Verifier]] = [standard.Webhook, svix.webhooks.Webhook]
VERIFICATION_ERRORS = (standard.WebhookVerificationError, svix.webhooks.WebhookVerificationError)


async def _deliver_event(developer: Client, receiver: Receiver) -> tuple[str, ReceivedRequest]:
    """Delivers a real event; returns the secret and the request."""
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    await create_agent(developer)
    (request,) = await receiver.wait_for(1)
    return webhook["secret"], request


async def test_a_delivery_has_the_documented_signature(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    secret, request = await _deliver_event(developer, receiver)
    assert request.headers.getall("X-Service-Signature") == [compute_signature(secret, request)]
    assert request.headers["X-Service-Signature"] != compute_signature(
        secret, request, request.body + b" "
    )
    assert request.headers["X-Service-Signature"] != compute_signature(PREVIOUS_SECRET, request)


async def test_the_timestamp_is_fresh_and_the_same_in_both_headers(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    _, request = await _deliver_event(developer, receiver)
    timestamp = request.headers["X-Service-Timestamp"]
    assert timestamp.isdigit()
    assert abs(time.time() - int(timestamp)) < 300
    assert request.headers["webhook-timestamp"] == timestamp


async def test_the_event_is_named_in_the_headers_and_in_the_body(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    _, request = await _deliver_event(developer, receiver)
    assert set(request.json) == {"id", "type", "created_at", "correlation_id", "data"}
    assert (
        request.headers["X-Service-Event-Id"] == request.headers["webhook-id"] == request.json["id"]
    )
    assert request.headers["X-Service-Event-Type"] == request.json["type"] == "agent.created"
    assert request.headers["Content-Type"] == "application/json"
    assert "X-Service-Signature-Previous" not in request.headers
    assert "X-Service-Retry-Count" not in request.headers


async def test_the_libraries_of_receivers_verify_a_delivery(
    world: World, courier: WorkerProcess, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for verifier in VERIFIERS:
        with subtests.test(verifier=verifier):
            developer = await world.user()
            receiver.reset()
            secret, request = await _deliver_event(developer, receiver)
            verifier(secret).verify(request.body, dict(request.headers))


async def test_the_libraries_of_receivers_refuse_an_altered_delivery(
    world: World, courier: WorkerProcess, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for verifier in VERIFIERS:
        with subtests.test(verifier=verifier):
            developer = await world.user()
            receiver.reset()
            secret, request = await _deliver_event(developer, receiver)
            headers = dict(request.headers)
            later = str(int(headers["webhook-timestamp"]) + 1)
            altered = [
                (secret, request.body + b" ", headers),
                (secret, request.body.replace(b"agent.created", b"agent.deleted"), headers),
                (secret, request.body, {**headers, "webhook-timestamp": later}),
                (secret, request.body, {**headers, "webhook-id": "evt_other"}),
                (secret, request.body, {**headers, "webhook-signature": STANDARD_SIGNATURE}),
                (PREVIOUS_SECRET, request.body, headers),
            ]
            for key, body, sent_headers in altered:
                with pytest.raises(VERIFICATION_ERRORS):
                    verifier(key).verify(body, sent_headers)


async def test_a_delivery_from_an_hour_ago_is_refused_as_too_old(
    world: World, courier: WorkerProcess, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for verifier in VERIFIERS:
        with subtests.test(verifier=verifier):
            developer = await world.user()
            receiver.reset()
            webhook = await create_webhook(developer, url=f"{receiver.url}/200")
            with clock.frozen(datetime.fromtimestamp(int(time.time()) - 3600, UTC)):
                await send_test_event(developer, webhook["id"])
            (request,) = await receiver.wait_for(1)
            assert request.headers["X-Service-Signature"] == compute_signature(
                webhook["secret"], request
            )
            with pytest.raises(VERIFICATION_ERRORS, match="too old"):
                verifier(webhook["secret"]).verify(request.body, dict(request.headers))


async def test_a_redelivery_has_a_new_signature_of_the_same_body(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    receiver.scripts["anew"] = [500, 200]
    webhook = await create_webhook(developer, url=f"{receiver.url}/script/anew")
    past = datetime.fromtimestamp(int(time.time()) - 100, UTC)
    with clock.frozen(past):
        await create_agent(developer)
        delivery = await wait_for_attempt(developer, webhook["id"])
    path = f"{PATH}/{webhook['id']}/executions/{delivery['id']}/redeliver"
    assert (await developer.post(path)).status_code == 202
    first, second = await receiver.wait_for(2)
    assert first.headers["X-Service-Timestamp"] == str(int(past.timestamp()))
    assert int(second.headers["X-Service-Timestamp"]) >= int(past.timestamp()) + 100
    assert first.body == second.body
    for request in (first, second):
        assert request.headers["X-Service-Signature"] == compute_signature(
            webhook["secret"], request
        )
    standard.Webhook(webhook["secret"]).verify(second.body, dict(second.headers))


async def test_two_webhooks_get_the_same_event_under_their_own_secrets(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhooks = {
        name: await create_webhook(developer, url=f"{receiver.url}/200/{name}") for name in "ab"
    }
    await create_agent(developer)
    await receiver.wait_for(2)
    for name, webhook in webhooks.items():
        (request,) = receiver.requests_to(f"/200/{name}")
        assert request.headers["X-Service-Signature"] == compute_signature(
            webhook["secret"], request
        )
    assert receiver.requests[0].body == receiver.requests[1].body
