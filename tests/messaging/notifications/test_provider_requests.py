"""The requests of the providers, compared with those that their APIs document."""

import base64
import hashlib
import hmac
from urllib.parse import unquote_plus

import pytest

from app.domain.messaging.notifications.providers.protocol import SendFailed
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.domain.messaging.outbox.egress import OutboxEgress
from app.kit import clock
from tests.messaging.notifications.notices import build_notice, send
from tests.messaging.notifications.provider_server import (
    ACCOUNT_SID,
    CHANNEL,
    DOMAIN,
    KEY,
    SERVICE_SID,
    SLACK_PATH,
    STUBS,
    ProviderCall,
    ProviderServer,
)


async def _send(
    egress: OutboxEgress, providers: ProviderServer, provider: str, **more: object
) -> ProviderCall:
    await send(egress, provider, providers.config(provider, **more))
    assert len(providers.calls) == len(providers.accepted) == 1
    providers.accepted.clear()
    return providers.calls.pop()


def _basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


async def test_sendgrid_receives_a_mail(loopback: OutboxEgress, providers: ProviderServer) -> None:
    call = await _send(loopback, providers, "sendgrid")
    assert (call.method, call.path) == ("POST", "/v3/mail/send")
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.headers["content-type"] == "application/json"
    assert call.json == {
        "personalizations": [{"to": [{"email": "bob@example.com"}]}],
        "from": {"email": "ann@example.com", "name": "Ann"},
        "subject": "Import failed",
        "content": [
            {"type": "text/plain", "value": "Row 7 has no name."},
            {"type": "text/html", "value": "<p>Row 7 has no name.</p>"},
        ],
    }


async def test_mailgun_receives_a_mail(loopback: OutboxEgress, providers: ProviderServer) -> None:
    call = await _send(loopback, providers, "mailgun")
    assert (call.method, call.path) == ("POST", f"/v3/{DOMAIN}/messages")
    assert call.headers["authorization"] == _basic(f"api:{KEY}")
    assert call.form == {
        "from": "Ann <ann@example.com>",
        "to": "bob@example.com",
        "subject": "Import failed",
        "text": "Row 7 has no name.",
        "html": "<p>Row 7 has no name.</p>",
    }


async def test_resend_receives_a_mail(loopback: OutboxEgress, providers: ProviderServer) -> None:
    call = await _send(loopback, providers, "resend")
    assert (call.method, call.path) == ("POST", "/emails")
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.headers["idempotency-key"] == "ntd_0123456789"
    assert call.json == {
        "from": "Ann <ann@example.com>",
        "to": ["bob@example.com"],
        "subject": "Import failed",
        "text": "Row 7 has no name.",
        "html": "<p>Row 7 has no name.</p>",
    }


async def test_resend_sends_a_repeated_notice_once(
    loopback: OutboxEgress, providers: ProviderServer
) -> None:
    for _ in range(2):
        await send(loopback, "resend", providers.config("resend"))
    assert (len(providers.calls), len(providers.accepted)) == (2, 1)


async def test_a_slack_webhook_receives_a_text(
    loopback: OutboxEgress, providers: ProviderServer
) -> None:
    call = await _send(loopback, providers, "slack_webhook")
    assert (call.method, call.path) == ("POST", SLACK_PATH)
    assert call.headers["content-type"] == "application/json"
    assert call.json == {"text": "*Import failed*\nRow 7 has no name."}


async def test_a_slack_bot_posts_a_text_to_its_channel(
    loopback: OutboxEgress, providers: ProviderServer
) -> None:
    call = await _send(loopback, providers, "slack_bot")
    assert (call.method, call.path) == ("POST", "/api/chat.postMessage")
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.headers["content-type"] == "application/json"
    assert call.json == {"channel": CHANNEL, "text": "*Import failed*\nRow 7 has no name."}


async def test_twilio_receives_a_text(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [("+14155550100", "From"), (SERVICE_SID, "MessagingServiceSid")]
    for sender, field in cases:
        with subtests.test(sender=sender, field=field):
            call = await _send(loopback, providers, "twilio", **{"from": sender})
            path = f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json"
            assert (call.method, call.path) == ("POST", path)
            assert call.headers["authorization"] == _basic(f"{ACCOUNT_SID}:{KEY}")
            text = "Import failed: Row 7 has no name."
            assert call.form == {"To": "+447700900000", field: sender, "Body": text}


async def test_vonage_receives_a_text(loopback: OutboxEgress, providers: ProviderServer) -> None:
    call = await _send(loopback, providers, "vonage")
    assert (call.method, call.path) == ("POST", "/sms/json")
    assert call.form == {
        "api_key": "abcd1234",
        "api_secret": KEY,
        "from": "Parley",
        "to": "447700900000",
        "text": "Import failed: Row 7 has no name.",
        "type": "text",
    }


async def test_vonage_receives_the_alphabet_of_a_text(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    kinds = {"Row [7]": "text", "Größe": "unicode", "✓": "unicode", "`x`": "unicode"}
    for text, kind in kinds.items():
        with subtests.test(text=text):
            await send(loopback, "vonage", providers.config("vonage"), text=text)
            assert providers.calls.pop().form["type"] == kind


async def test_a_webhook_receives_the_notice_with_custom_headers(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for method in ("POST", "PUT", "PATCH"):
        with subtests.test(method=method):
            headers = {"X-Team": "blue", "user-agent": "Shop/1", "Authorization": "Bearer abc"}
            call = await _send(loopback, providers, "webhook", method=method, headers=headers)
            assert (call.method, call.path) == (method, "/hook")
            assert call.json == {
                "id": "ntd_0123456789",
                "type": "workflow_failed",
                "title": "Import failed",
                "message": "Row 7 has no name.",
                "data": {"row": 7},
                "created_at": "2026-11-16T12:30:00Z",
            }
            expected = {name.lower(): value for name, value in headers.items()}
            expected |= {
                "content-type": "application/json",
                "x-service-notification-id": "ntd_0123456789",
            }
            assert expected.items() <= call.headers.items()
            assert "x-service-signature" not in call.headers


async def test_a_webhook_with_a_secret_is_signed_like_a_delivery(
    loopback: OutboxEgress, providers: ProviderServer
) -> None:
    call = await _send(loopback, providers, "webhook", secret="shared-secret")
    timestamp = call.headers["x-service-timestamp"]
    assert abs(int(timestamp) - clock.epoch()) < 60
    content = f"{timestamp}.".encode() + call.body
    digest = hmac.new(b"shared-secret", content, hashlib.sha256).hexdigest()
    assert call.headers["x-service-signature"] == f"sha256={digest}"


async def test_a_base_address_may_have_a_path_and_a_slash_at_the_end(
    loopback: OutboxEgress, providers: ProviderServer
) -> None:
    await send(
        loopback, "slack_bot", providers.config("slack_bot", api_base=f"{providers.url}/api/")
    )
    assert providers.accepted[0].path == "/api/chat.postMessage"


async def test_no_mail_has_a_line_break_in_its_subject(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for provider in ("sendgrid", "mailgun", "resend"):
        with subtests.test(provider=provider):
            config = providers.config(provider)
            await send(loopback, provider, config, title="A\r\nBcc: eve@example.com")
            call = providers.calls.pop()
            body = call.form if provider == "mailgun" else call.json
            assert body["subject"] == "A Bcc: eve@example.com"


async def test_domains_of_mails_are_sent_in_ascii(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for provider in ("sendgrid", "mailgun", "resend"):
        with subtests.test(provider=provider):
            config = providers.config(provider, **{"from": "Jürgen <j@bücher.example>"})
            await send(loopback, provider, config, recipient="k@bücher.example")
            call = providers.calls.pop()
            text = unquote_plus(call.body.decode())
            assert "Jürgen" in text
            assert "j@xn--bcher-kva.example" in text
            assert "k@xn--bcher-kva.example" in text


async def test_every_request_names_the_client(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for provider in STUBS:
        with subtests.test(provider=provider):
            call = await _send(loopback, providers, provider)
            assert call.headers["user-agent"] == "Parley-Notifications/1"


async def test_an_in_app_notification_is_not_sent(loopback: OutboxEgress) -> None:
    provider = PROVIDERS["in_app"]
    with pytest.raises(SendFailed) as failure:
        await provider.send(loopback, provider.config(to=["usr_1"]), build_notice())
    assert failure.value.is_permanent
