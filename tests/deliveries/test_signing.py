"""How deliveries are signed: known values first, then what receivers make of real ones.

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

from app.domain.deliveries import signing
from app.kit import clock
from tests.deliveries.receiver import ReceivedRequest, Receiver
from tests.events.factories import create_agent
from tests.webhooks.factories import PATH, create_webhook, send_test_event, wait_for_attempt
from tests.world import Client
from workers.main import WorkerProcess

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
BEFORE = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
AT = 1767268800
BODY = '{"id":"evt_1","type":"agent.created","data":{"name":"Zoë"}}'.encode()
SIGNED = "sha256=a495e3815f04ce8009260a705c2d435eae20255db59606d91621be923615ef86"
SIGNED_BEFORE = "sha256=0ff9562ccfa6d5f8e8335d9db02be33dc160bbc4178c245504a82a7a27701d5a"
SIGNED_NOTHING = "sha256=5fa76bcf0d68e66746dc127f41488686ce103f6da8ca9c40c61bd18643a8116a"
STANDARD = "v1,+oLJ8eF7tlPD+7OOG9HTzAcqImZA+yRhvi0GMiFJT2c="
STANDARD_BEFORE = "v1,wKsHhGyRSAUQcJx5v0CQ8MwY1Cge1H8TmgSQPGzSSdo="
STANDARD_NOTHING = "v1,vrBtMutd4LQjdia4I5rzcT46kbRFuoukSAQQ3GHple8="

# Known values


@pytest.mark.parametrize(
    ("secret", "body", "expected"),
    [(SECRET, BODY, SIGNED), (BEFORE, BODY, SIGNED_BEFORE), (SECRET, b"", SIGNED_NOTHING)],
)
def test_our_signature_is_keyed_with_the_whole_secret(
    secret: str, body: bytes, expected: str
) -> None:
    assert signing.signature(secret, AT, body) == expected


@pytest.mark.parametrize(
    ("secret", "body", "expected"),
    [(SECRET, BODY, STANDARD), (BEFORE, BODY, STANDARD_BEFORE), (SECRET, b"", STANDARD_NOTHING)],
)
def test_the_standard_signature_is_keyed_with_the_bytes_that_the_secret_spells(
    secret: str, body: bytes, expected: str
) -> None:
    assert signing.standard_signature(secret, "evt_1", AT, body) == expected


def test_the_published_example_of_standard_webhooks_holds() -> None:
    signed = signing.standard_signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("secret", "at", "body"),
    [(BEFORE, AT, BODY), (SECRET, AT + 1, BODY), (SECRET, AT, BODY + b" ")],
)
def test_another_secret_time_or_body_gives_another_signature(
    secret: str, at: int, body: bytes
) -> None:
    assert signing.signature(secret, at, body) != SIGNED
    assert signing.standard_signature(secret, "evt_1", at, body) != STANDARD


def test_another_id_gives_another_standard_signature() -> None:
    assert signing.standard_signature(SECRET, "evt_2", AT, BODY) != STANDARD


@pytest.mark.parametrize("body", [b"\x00\xff", b"a.b", b"\r\n", b"x" * 1_000_000])
def test_any_bytes_are_signed_as_they_are(body: bytes) -> None:
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    ours = hmac.digest(SECRET.encode(), b"1767268800." + body, hashlib.sha256)
    theirs = hmac.digest(key, b"evt_1.1767268800." + body, hashlib.sha256)
    assert signing.signature(SECRET, AT, body) == f"sha256={ours.hex()}"
    spelled = base64.b64encode(theirs).decode()
    assert signing.standard_signature(SECRET, "evt_1", AT, body) == f"v1,{spelled}"


def test_one_secret_makes_these_headers() -> None:
    assert signing.headers([SECRET], "evt_1", "agent.created", AT, BODY) == {
        "X-Service-Signature": SIGNED,
        "X-Service-Timestamp": "1767268800",
        "X-Service-Event-Id": "evt_1",
        "X-Service-Event-Type": "agent.created",
        "webhook-id": "evt_1",
        "webhook-timestamp": "1767268800",
        "webhook-signature": STANDARD,
    }


def test_the_secret_before_signs_second() -> None:
    alone = signing.headers([SECRET], "evt_1", "agent.created", AT, BODY)
    assert signing.headers([SECRET, BEFORE], "evt_1", "agent.created", AT, BODY) == {
        **alone,
        "X-Service-Signature-Previous": SIGNED_BEFORE,
        "webhook-signature": f"{STANDARD} {STANDARD_BEFORE}",
    }


def test_no_two_new_secrets_are_alike() -> None:
    made = {signing.new_secret() for _ in range(1000)}
    assert len(made) == 1000
    assert {len(base64.b64decode(one.removeprefix("whsec_"))) for one in made} == {32}


# Over the wire


class Verifier(Protocol):
    def verify(self, data: bytes, headers: dict[str, str]) -> Any: ...


VERIFIERS: list[Callable[[str], Verifier]] = [standard.Webhook, svix.webhooks.Webhook]
REFUSALS = (standard.WebhookVerificationError, svix.webhooks.WebhookVerificationError)


async def _sent(developer: Client, receiver: Receiver) -> tuple[str, ReceivedRequest]:
    """A delivery of a real event, and the secret that it is signed with."""
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    await create_agent(developer)
    (got,) = await receiver.wait_for(1)
    return made["secret"], got


def _ours(secret: str, got: ReceivedRequest, body: bytes | None = None) -> str:
    content = (
        got.headers["X-Service-Timestamp"].encode() + b"." + (got.body if body is None else body)
    )
    return "sha256=" + hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


async def test_a_receiver_finds_the_signature_of_the_spec(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    secret, got = await _sent(developer, receiver)
    assert got.headers.getall("X-Service-Signature") == [_ours(secret, got)]
    assert got.headers["X-Service-Signature"] != _ours(secret, got, got.body + b" ")
    assert got.headers["X-Service-Signature"] != _ours(BEFORE, got)


async def test_the_timestamp_is_fresh_and_the_same_in_both_headers(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    _, got = await _sent(developer, receiver)
    stamp = got.headers["X-Service-Timestamp"]
    assert stamp.isdigit()
    assert abs(time.time() - int(stamp)) < 300
    assert got.headers["webhook-timestamp"] == stamp


async def test_the_event_is_named_in_the_headers_and_in_the_body(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    _, got = await _sent(developer, receiver)
    assert set(got.json) == {"id", "type", "created_at", "correlation_id", "data"}
    assert got.headers["X-Service-Event-Id"] == got.headers["webhook-id"] == got.json["id"]
    assert got.headers["X-Service-Event-Type"] == got.json["type"] == "agent.created"
    assert got.headers["Content-Type"] == "application/json"
    assert "X-Service-Signature-Previous" not in got.headers
    assert "X-Service-Retry-Count" not in got.headers


@pytest.mark.parametrize("verifier", VERIFIERS)
async def test_the_libraries_of_receivers_verify_a_delivery(
    developer: Client,
    courier: WorkerProcess,
    receiver: Receiver,
    verifier: Callable[[str], Verifier],
) -> None:
    secret, got = await _sent(developer, receiver)
    verifier(secret).verify(got.body, dict(got.headers))


@pytest.mark.parametrize("verifier", VERIFIERS)
async def test_the_libraries_of_receivers_refuse_what_was_altered(
    developer: Client,
    courier: WorkerProcess,
    receiver: Receiver,
    verifier: Callable[[str], Verifier],
) -> None:
    secret, got = await _sent(developer, receiver)
    headers = dict(got.headers)
    later = str(int(headers["webhook-timestamp"]) + 1)
    altered = [
        (secret, got.body + b" ", headers),
        (secret, got.body.replace(b"agent.created", b"agent.deleted"), headers),
        (secret, got.body, {**headers, "webhook-timestamp": later}),
        (secret, got.body, {**headers, "webhook-id": "evt_other"}),
        (secret, got.body, {**headers, "webhook-signature": STANDARD}),
        (BEFORE, got.body, headers),
    ]
    for key, body, sent in altered:
        with pytest.raises(REFUSALS):
            verifier(key).verify(body, sent)


@pytest.mark.parametrize("verifier", VERIFIERS)
async def test_a_delivery_from_an_hour_ago_is_refused_as_too_old(
    developer: Client,
    courier: WorkerProcess,
    receiver: Receiver,
    verifier: Callable[[str], Verifier],
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    with clock.frozen(datetime.fromtimestamp(int(time.time()) - 3600, UTC)):
        await send_test_event(developer, made["id"])
    (got,) = await receiver.wait_for(1)
    assert got.headers["X-Service-Signature"] == _ours(made["secret"], got)
    with pytest.raises(REFUSALS, match="too old"):
        verifier(made["secret"]).verify(got.body, dict(got.headers))


async def test_each_attempt_is_signed_anew_over_the_same_body(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    receiver.scripts["anew"] = [500, 200]
    made = await create_webhook(developer, url=f"{receiver.url}/script/anew")
    past = datetime.fromtimestamp(int(time.time()) - 100, UTC)
    with clock.frozen(past):
        await create_agent(developer)
        delivery = await wait_for_attempt(developer, made["id"])
    path = f"{PATH}/{made['id']}/executions/{delivery['id']}/redeliver"
    assert (await developer.post(path)).status_code == 202
    first, second = await receiver.wait_for(2)
    assert first.headers["X-Service-Timestamp"] == str(int(past.timestamp()))
    assert int(second.headers["X-Service-Timestamp"]) >= int(past.timestamp()) + 100
    assert first.body == second.body
    for got in (first, second):
        assert got.headers["X-Service-Signature"] == _ours(made["secret"], got)
    standard.Webhook(made["secret"]).verify(second.body, dict(second.headers))


async def test_two_webhooks_get_the_same_event_under_their_own_secrets(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = {
        name: await create_webhook(developer, url=f"{receiver.url}/200/{name}") for name in "ab"
    }
    await create_agent(developer)
    await receiver.wait_for(2)
    for name, hook in made.items():
        (got,) = receiver.requests_to(f"/200/{name}")
        assert got.headers["X-Service-Signature"] == _ours(hook["secret"], got)
    assert receiver.requests[0].body == receiver.requests[1].body
