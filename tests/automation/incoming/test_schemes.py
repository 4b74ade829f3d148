"""Features of single signature schemes, and the examples of their documentation."""

import base64
from datetime import datetime

import pytest
import svix.webhooks

from app.domain.automation.incoming import verification
from app.domain.automation.incoming.verification import RawRequest
from app.kit import clock
from app.services import Services
from tests.assertions import refused
from tests.automation.incoming.api import PATH, RECEIVED, list_events, list_payloads
from tests.automation.incoming.factories import create_webhook, submit_payload
from tests.automation.incoming.signed_requests import (
    BODY,
    assert_rejected,
    create_signed_webhook,
    send_signed_payload,
)
from tests.automation.incoming.signers import NOW, OTHER, SECRET, SIGNERS, Headers, standard
from tests.automation.incoming.sql import list_bodies
from tests.database import run_sql
from tests.messaging.deliveries.receiver import Receiver
from tests.world import Client, World
from workers.main import WorkerProcess

# hmac_sha256


async def test_the_header_of_hmac_sha256_can_be_chosen(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_signed_webhook(developer, "hmac_sha256", header="X-Shop-Hmac")
    signed = SIGNERS["hmac_sha256"](SECRET, BODY, NOW)
    await assert_rejected(developer, anonymous, services, webhook, signed, BODY)
    answer = await send_signed_payload(anonymous, webhook, {"x-shop-HMAC": signed["X-Signature"]})
    assert answer.status_code == 202


# Standard Webhooks


async def test_a_signature_of_the_svix_library_is_accepted(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_signed_webhook(developer, "standard_webhooks")
    signature = svix.webhooks.Webhook(SECRET).sign("msg_1", NOW, BODY.decode())
    headers = {**standard(SECRET, BODY, NOW), "webhook-signature": signature}
    assert (await send_signed_payload(anonymous, webhook, headers)).status_code == 202


async def test_the_older_svix_header_names_are_accepted(
    developer: Client, anonymous: Client
) -> None:
    webhook = await create_signed_webhook(developer, "standard_webhooks")
    headers = {
        name.replace("webhook-", "svix-"): value
        for name, value in standard(SECRET, BODY, NOW).items()
    }
    answer = await send_signed_payload(anonymous, webhook, headers)
    assert answer.status_code == 202, answer.text


async def test_one_of_several_standard_signatures_is_enough(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_signed_webhook(developer, "standard_webhooks")
    valid_headers, invalid_headers = standard(SECRET, BODY, NOW), standard(OTHER, BODY, NOW)
    signatures = (
        "v2,AAAA",
        invalid_headers["webhook-signature"],
        valid_headers["webhook-signature"],
    )
    headers = {**valid_headers, "webhook-signature": " ".join(signatures[:2])}
    await assert_rejected(developer, anonymous, services, webhook, headers, BODY)
    headers = {**valid_headers, "webhook-signature": " ".join(signatures)}
    assert (await send_signed_payload(anonymous, webhook, headers)).status_code == 202


async def test_id_and_timestamp_are_signed_with_the_body(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str | None]] = [("webhook-id", "msg_2"), ("webhook-timestamp", None)]
    for name, value in cases:
        with subtests.test(name=name, value=value):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, "standard_webhooks")
            other = value or str(int(NOW.timestamp()) + 1)
            headers = {**standard(SECRET, BODY, NOW), name: other}
            await assert_rejected(developer, anonymous, services, webhook, headers, BODY)


async def test_a_secret_without_its_prefix_is_the_same(
    developer: Client, anonymous: Client
) -> None:
    verification = {"scheme": "standard_webhooks", "secret": SECRET.removeprefix("whsec_")}
    webhook = await create_webhook(developer, verification=verification)
    assert (
        await send_signed_payload(anonymous, webhook, standard(SECRET, BODY, NOW))
    ).status_code == 202


async def test_a_standard_secret_with_a_short_key_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[bytes] = [b"", b"k", b"seven77"]
    for key in cases:
        with subtests.test(key=key):
            developer = await world.user()
            secret = f"whsec_{base64.b64encode(key).decode()}"
            verification = {"scheme": "standard_webhooks", "secret": secret}
            answer = await developer.post(PATH, {"name": "Orders", "verification": verification})
            assert set(refused(answer, 422, "validation_error")["details"]) == {
                "verification.secret"
            }


async def test_a_delivery_of_parley_is_accepted_and_continues_its_event_chain(
    developer: Client, anonymous: Client, receiver: Receiver, courier: WorkerProcess
) -> None:
    body = {"url": f"{receiver.url}/200", "events": ["system.incoming_webhook.created"]}
    outgoing = (await developer.post("/api/v1/webhooks", body)).json()
    verification = {"scheme": "standard_webhooks", "secret": outgoing["secret"]}
    incoming = await create_webhook(developer, verification=verification)
    (delivery,) = await receiver.wait_for(1)
    headers = {
        k: v for k, v in delivery.headers.items() if k.lower() not in {"host", "content-length"}
    }
    answer = await anonymous.http.post(incoming["url"], content=delivery.body, headers=headers)
    assert answer.status_code == 202, answer.text
    (record,) = await list_payloads(developer, incoming)
    assert record["payload"] == delivery.json
    event = (await developer.get(f"/api/v1/event-log/{record['id']}")).json()
    assert event["parent_id"] == delivery.json["id"]
    assert event["correlation_id"] == delivery.json["correlation_id"]


# Stripe


async def test_one_of_several_v1_signatures_of_stripe_is_enough(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for separator in (",", ", "):
        with subtests.test(separator=separator):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, "stripe")
            timestamp, signature, _ = SIGNERS["stripe"](SECRET, BODY, NOW)[
                "Stripe-Signature"
            ].split(",")
            wrong_signature = SIGNERS["stripe"](OTHER, BODY, NOW)["Stripe-Signature"].split(",")[1]
            old_version = signature.replace("v1", "v0")
            invalid = {
                "Stripe-Signature": separator.join([timestamp, wrong_signature, old_version])
            }
            valid = {
                "Stripe-Signature": separator.join([timestamp, wrong_signature, signature, "v0=1"])
            }
            await assert_rejected(developer, anonymous, services, webhook, invalid, BODY)
            assert (await send_signed_payload(anonymous, webhook, valid)).status_code == 202


# Slack


CHALLENGE = b'{"type": "url_verification", "token": "t", "challenge": "3eZbrw1aB10oKc"}'


async def test_slacks_challenge_is_answered_and_not_stored(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_signed_webhook(developer, "slack")
    answer = await send_signed_payload(
        anonymous, webhook, SIGNERS["slack"](SECRET, CHALLENGE, NOW), CHALLENGE
    )
    assert answer.status_code == 200
    assert answer.json() == {"challenge": "3eZbrw1aB10oKc"}
    assert await list_bodies(services, webhook) == []
    assert await list_events(developer, RECEIVED) == []


async def test_a_challenge_that_is_not_signed_is_rejected(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_signed_webhook(developer, "slack")
    await assert_rejected(developer, anonymous, services, webhook, {}, CHALLENGE)


async def test_a_challenge_of_another_scheme_is_a_payload(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    await submit_payload(anonymous, webhook, CHALLENGE)
    assert await list_bodies(services, webhook) == [CHALLENGE]


async def test_an_incomplete_challenge_is_a_payload(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[bytes] = [
        b'{"type": "url_verification"}',
        b'{"type": "url_verification", "challenge": 7}',
        b'{"type": "event_callback", "challenge": "x"}',
        b'["url_verification"]',
    ]
    for body in cases:
        with subtests.test(body=body):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, "slack")
            answer = await send_signed_payload(
                anonymous, webhook, SIGNERS["slack"](SECRET, body, NOW), body
            )
            assert answer.status_code == 202
            assert await list_bodies(services, webhook) == [body]


# Secrets and published examples


async def test_a_secret_that_cannot_be_decrypted_rejects_every_payload(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook, other = [await create_signed_webhook(developer, "github") for _ in range(2)]
    sql = """UPDATE incoming_webhooks SET secret = (
                SELECT secret FROM incoming_webhooks WHERE id = $2) WHERE id = $1"""
    await run_sql(services, sql, webhook["id"], other["id"])
    signed = SIGNERS["github"](SECRET, BODY, NOW)
    await assert_rejected(developer, anonymous, services, webhook, signed, BODY)


async def test_a_changed_secret_applies_at_once(developer: Client, anonymous: Client) -> None:
    webhook = await create_signed_webhook(developer, "github")
    change = {"verification": {"scheme": "github", "secret": OTHER}}
    await developer.put(f"{PATH}/{webhook['id']}", change)
    sign = SIGNERS["github"]
    assert (
        await send_signed_payload(anonymous, webhook, sign(SECRET, BODY, NOW))
    ).status_code == 401
    assert (
        await send_signed_payload(anonymous, webhook, sign(OTHER, BODY, NOW))
    ).status_code == 202


_DOCUMENTED_EXAMPLES: list[tuple[str, str, int, Headers, bytes]] = [
    (
        "github",
        "It's a Secret to Everybody",
        0,
        {
            "x-hub-signature-256": "sha256="
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        },
        b"Hello, World!",
    ),
    (
        "standard_webhooks",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        1614265330,
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        b'{"test": 2432232314}',
    ),
    (
        "slack",
        "8f742231b10e8888abcd99yyyzzz85a5",
        1531420618,
        {
            "x-slack-request-timestamp": "1531420618",
            "x-slack-signature": "v0="
            "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        (
            b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
            b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
            b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
            b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
            b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
        ),
    ),
]


def test_the_examples_of_the_schemes_documentation_are_genuine(subtests: pytest.Subtests) -> None:
    for scheme, secret, at, headers, body in _DOCUMENTED_EXAMPLES:
        moment = datetime.fromtimestamp(at, NOW.tzinfo)
        with subtests.test(scheme=scheme), clock.frozen(moment):
            assert verification.is_genuine(scheme, secret, None, RawRequest(headers, body))
