"""The verification of an incoming webhook; its secret is never returned."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.automation.incoming import signers
from tests.automation.incoming.api import PATH, read_field_error
from tests.automation.incoming.factories import (
    GITHUB,
    MASKED_GITHUB,
    SECRET,
    create_webhook,
    send_payload,
)
from tests.automation.incoming.signed_requests import create_signed_webhook
from tests.database import fetch_rows
from tests.world import Client, World


async def test_each_scheme_can_be_chosen(world: World, subtests: pytest.Subtests) -> None:
    for scheme in signers.SIGNERS:
        with subtests.test(scheme=scheme):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, scheme)
            assert webhook["verification"] == {
                "scheme": scheme,
                "secret": "********",
                "header": None,
            }


_INVALID_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("verification.scheme", {"secret": SECRET}),
    ("verification.scheme", {"scheme": "md5", "secret": SECRET}),
    ("verification.scheme", {"scheme": None, "secret": SECRET}),
    ("verification.secret", {"scheme": "github"}),
    ("verification.secret", {"scheme": "github", "secret": None}),
    ("verification.secret", {"scheme": "github", "secret": ""}),
    ("verification.secret", {"scheme": "github", "secret": "short"}),
    ("verification.secret", {"scheme": "github", "secret": "x" * 1001}),
    ("verification.secret", {"scheme": "github", "secret": "line\nbreak-123"}),
    ("verification.secret", {"scheme": "github", "secret": "********"}),
    ("verification.secret", {"scheme": "standard_webhooks", "secret": "whsec_no*base64"}),
    ("verification.secret", {"scheme": "standard_webhooks", "secret": "whsec_AAA"}),
    ("verification.header", {**GITHUB, "header": "X-Signature"}),
    ("verification.header", {"scheme": "hmac_sha256", "secret": SECRET, "header": ""}),
    ("verification.header", {"scheme": "hmac_sha256", "secret": SECRET, "header": "a b"}),
    ("verification.header", {"scheme": "hmac_sha256", "secret": SECRET, "header": "a\n"}),
    ("verification.header", {"scheme": "hmac_sha256", "secret": SECRET, "header": "x" * 101}),
]


async def test_an_invalid_verification_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for field, verification in _INVALID_FIELDS:
        with subtests.test(field=field, verification=verification):
            message = await read_field_error(
                developer, field, {"name": "Orders", "verification": verification}
            )
            assert SECRET not in message


async def test_the_secret_is_shown_nowhere(developer: Client, services: Services) -> None:
    answer = await developer.post(PATH, {"name": "Orders", "verification": GITHUB})
    path = f"{PATH}/{answer.json()['id']}"
    texts = [
        answer.text,
        (await developer.get(path)).text,
        (await developer.get(PATH)).text,
        (await developer.put(path, {"verification": GITHUB})).text,
        (await developer.get("/api/v1/event-log")).text,
    ]
    rows = await fetch_rows(
        services, "SELECT * FROM incoming_webhooks WHERE id = $1", answer.json()["id"]
    )
    texts += [str(dict(row)) for row in rows]
    assert not [text for text in texts if SECRET in text]
    assert (await developer.get(path)).json()["verification"] == MASKED_GITHUB


async def test_a_mask_sent_back_keeps_the_secret(developer: Client, services: Services) -> None:
    webhook = await create_webhook(developer, verification=GITHUB)
    sql = "SELECT secret FROM incoming_webhooks WHERE id = $1"
    rows = await fetch_rows(services, sql, webhook["id"])
    answer = await developer.put(
        f"{PATH}/{webhook['id']}", {"verification": webhook["verification"]}
    )
    assert answer.json() == webhook
    assert await fetch_rows(services, sql, webhook["id"]) == rows


async def test_a_mask_keeps_no_secret_of_another_scheme(developer: Client) -> None:
    webhook = await create_webhook(developer, verification=GITHUB)
    answer = await developer.put(
        f"{PATH}/{webhook['id']}", {"verification": {"scheme": "stripe", "secret": "********"}}
    )
    assert set(refused(answer, 422, "validation_error")["details"]) == {"verification.secret"}


async def test_null_removes_the_verification(
    developer: Client, anonymous: Client, services: Services
) -> None:
    webhook = await create_webhook(developer, verification=GITHUB)
    assert (await send_payload(anonymous, webhook)).status_code == 401
    answer = await developer.put(f"{PATH}/{webhook['id']}", {"verification": None})
    assert answer.json()["verification"] is None
    assert (await send_payload(anonymous, webhook)).status_code == 202
    sql = "SELECT secret FROM incoming_webhooks WHERE id = $1"
    assert (await fetch_rows(services, sql, webhook["id"]))[0]["secret"] is None


async def test_a_secret_is_any_line_of_text(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for secret in ("with spaces in it", "geheimnisvöll"):
        with subtests.test(secret=secret):
            developer = await world.user()
            webhook = await create_webhook(
                developer, verification={"scheme": "github", "secret": secret}
            )
            headers = signers.github(secret, b"{}", signers.NOW)
            answer = await anonymous.http.post(
                f"/webhooks/in/{webhook['slug']}", content=b"{}", headers=headers
            )
            assert answer.status_code == 202, answer.text
