"""What the answers of providers mean: accepted, refused, or worth another try."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from app.domain.messaging.notifications import configs
from app.domain.messaging.notifications.providers import http
from app.domain.messaging.notifications.providers.protocol import SendFailed
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.domain.messaging.outbox.egress import OutboxEgress
from app.net.egress import Guard
from tests.messaging.notifications.notices import build_notice, fail, send
from tests.messaging.notifications.provider_server import KEY, STUBS, ProviderServer, vonage_body
from tests.ports import free_port


def test_every_provider_that_calls_a_server_has_a_stub() -> None:
    # Mails have a server of their own, and the notification center calls nobody.
    assert STUBS.keys() == PROVIDERS.keys() - {"smtp", "in_app"}


async def test_a_wrong_key_is_a_permanent_failure_with_the_providers_reason(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for provider, stub in STUBS.items():
        if stub.wrong_value is None:
            continue
        key, value, reason = stub.wrong_value
        with subtests.test(provider=provider):
            change = {key: value.format(url=providers.url)}
            failure = await fail(loopback, provider, providers.config(provider, **change))
            assert reason in failure.message
            assert (failure.is_permanent, failure.code) == (True, "provider_error")
            assert providers.accepted == []


_CASES: list[tuple[int, bool]] = [
    (302, True),
    (400, True),
    (403, True),
    (404, True),
    (408, False),
    (409, False),
    (410, True),
    (413, True),
    (422, True),
    (425, False),
    (429, False),
    (500, False),
    (503, False),
]


async def test_a_status_says_whether_another_try_may_succeed(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for status, is_permanent in _CASES:
        with subtests.test(status=status, is_permanent=is_permanent):
            for provider in STUBS:
                with subtests.test(provider=provider):
                    refusal = STUBS[provider].refusal
                    providers.answer(status, refusal)
                    failure = await fail(loopback, provider, providers.config(provider))
                    assert (failure.is_permanent, failure.retry_after) == (is_permanent, None)
                    reason = ": because" if refusal else ""
                    assert failure.message == f"the provider answered {status}{reason}"


async def test_a_provider_says_when_to_try_again(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    providers.answer(429, {}, {"Retry-After": "17"})
    for provider in STUBS:
        with subtests.test(provider=provider):
            failure = await fail(loopback, provider, providers.config(provider))
            assert (failure.is_permanent, failure.retry_after) == (False, 17.0)
            assert failure.is_throttled


async def test_slack_refuses_a_message_with_status_200(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, bool]] = [
        *((error, True) for error in ("invalid_auth", "channel_not_found", "not_in_channel")),
        *((error, True) for error in ("is_archived", "account_inactive", "token_revoked")),
        *((error, True) for error in ("missing_scope", "msg_too_long", "unknown_error")),
        *((error, False) for error in ("ratelimited", "rate_limited", "internal_error")),
        *((error, False) for error in ("fatal_error", "service_unavailable", "request_timeout")),
    ]
    for error, is_permanent in cases:
        with subtests.test(error=error, is_permanent=is_permanent):
            providers.answer(200, {"ok": False, "error": error})
            failure = await fail(loopback, "slack_bot", providers.config("slack_bot"))
            assert (failure.message, failure.is_permanent) == (
                f"Slack answered: {error}",
                is_permanent,
            )
            assert failure.is_throttled is error.startswith("rate")


async def test_slack_may_repeat_a_long_message_in_its_answer(
    loopback: OutboxEgress, providers: ProviderServer
) -> None:
    """A message that was accepted must not be posted again."""
    providers.answer(200, {"ok": True, "message": {"text": "\u0416" * 100_000}})
    await send(loopback, "slack_bot", providers.config("slack_bot"))


async def test_vonage_refuses_a_message_with_status_200(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    cases = [
        ([("1", "Throttled")], "status 1: Throttled", False),
        ([("5", "Internal Error")], "status 5: Internal Error", False),
        ([("2", "Missing to param")], "status 2: Missing to param", True),
        ([("9", "")], "status 9", True),
        ([("0", ""), ("7", "Number barred")], "status 7: Number barred", True),
        # Another try would repeat the part that was accepted.
        ([("0", ""), ("1", "Throttled")], "status 1: Throttled", True),
    ]
    for parts, reason, is_permanent in cases:
        with subtests.test(parts=parts):
            providers.answer(200, vonage_body(*parts))
            failure = await fail(loopback, "vonage", providers.config("vonage"))
            assert failure.message == f"Vonage answered {reason}"
            assert failure.is_permanent is is_permanent


async def test_an_answer_of_another_service_is_no_success(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for provider in ("slack_bot", "vonage"):
        with subtests.test(provider=provider):
            bodies = [
                b"",
                b"<html>",
                b"[]",
                b"{}",
                b'{"ok": 1}',
                b'{"messages": []}',
                b'{"messages": [1]}',
            ]
            for body in [
                *bodies,
                b'{"messages": [{"status": 0}]}',
                b"[" * 5000,
                b"\xff",
                b"x" * 100_000,
            ]:
                with subtests.test(body=body[:40]):
                    providers.answer(200, body)
                    failure = await fail(loopback, provider, providers.config(provider))
                    assert failure.message.startswith("the answer is not one of ")
                    assert not failure.is_permanent


async def test_a_success_with_an_unexpected_body_is_not_sent_again(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    for provider in sorted(set(STUBS) - {"slack_bot", "vonage"}):
        for body in (b"", b"<html>", b"x" * 100_000):
            with subtests.test(provider=provider, body=body[:10]):
                providers.answer(200, body)
                await send(loopback, provider, providers.config(provider))


async def test_a_refusal_with_an_unexpected_body_still_has_its_status(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    bodies = {
        b"": "",
        b"[]": ": []",
        b'{"message": 7, "errors": [], "error": {}}': ': {"message": 7, "errors": [], "error": {}}',
        b"<html>\n  down\0</html>": ": <html> down</html>",
        b"\xff": ": \ufffd",
        b"[" * 5000: ": " + "[" * 5000,
        b"x" * 100_000: "",
    }
    for provider in (name for name, stub in STUBS.items() if stub.refusal):
        for body, reason in bodies.items():
            with subtests.test(provider=provider, body=body[:40]):
                providers.answer(500, body)
                failure = await fail(loopback, provider, providers.config(provider))
                assert failure.message == f"the provider answered 500{reason}"


async def test_the_answer_of_a_webhook_is_not_repeated(
    loopback: OutboxEgress, providers: ProviderServer
) -> None:
    providers.answer(500, b"do not show this")
    failure = await fail(loopback, "webhook", providers.config("webhook"))
    assert failure.message == "the provider answered 500"


async def test_a_redirect_is_not_followed(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    providers.answer(307, b"moved", {"Location": f"{providers.url}/hook"})
    for provider in STUBS:
        with subtests.test(provider=provider):
            failure = await fail(loopback, provider, providers.config(provider))
            assert failure.is_permanent
            assert len(providers.calls) == 1
            providers.calls.clear()


async def test_a_provider_that_does_not_answer_is_tried_again(
    loopback: OutboxEgress, providers: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "TIMEOUT_SECONDS", 0.2)
    providers.hold = asyncio.Event()
    try:
        failures = await asyncio.gather(
            *(fail(loopback, provider, providers.config(provider)) for provider in STUBS)
        )
    finally:
        providers.hold.set()
    expected = ("no answer: no answer within 0.2 s", "delivery_failed", False)
    assert {(item.message, item.code, item.is_permanent) for item in failures} == {expected}


async def test_a_provider_that_cannot_be_reached_is_tried_again(loopback: OutboxEgress) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/hook"
    failure = await fail(loopback, "webhook", {"url": url})
    assert (failure.code, failure.is_permanent) == ("delivery_failed", False)
    assert failure.message == f"no answer: 127.0.0.1:{port} refused the connection"


async def test_a_private_address_gets_no_request(
    loopback: OutboxEgress,
    public_only: OutboxEgress,
    providers: ProviderServer,
    subtests: pytest.Subtests,
) -> None:
    """Also where the operator allowed it when the config was saved, and behind a public name."""
    rebound = OutboxEgress(Guard((), resolve=_resolve_to_loopback))
    for name in STUBS:
        values = providers.config(name)
        public = {
            key: value.replace("http://127.0.0.1", "https://shop.example.com")
            for key, value in values.items()
        }
        cases = ((public_only, values, loopback.guard), (rebound, public, rebound.guard))
        for egress, config, guard in cases:
            with subtests.test(provider=name, config=config):
                valid = configs.validate(PROVIDERS[name], config, guard)
                message = await _refusal(egress, name, valid)
                assert message.endswith("can allow it with PARLEY_EGRESS_ALLOW")
    assert providers.calls == []
    await rebound.close()


async def test_a_secret_is_not_sent_without_tls_after_the_host_is_no_longer_allowed(
    public_only: OutboxEgress, subtests: pytest.Subtests
) -> None:
    allowed = Guard(("shop.example.com",))
    for name, key in (("webhook", "url"), ("slack_webhook", "webhook_url")):
        with subtests.test(provider=name):
            values = {key: "http://shop.example.com/hook"}
            config = configs.validate(PROVIDERS[name], values, allowed)
            message = await _refusal(public_only, name, config)
            assert message == "no answer: must start with https://"


async def _resolve_to_loopback(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


async def _refusal(egress: OutboxEgress, name: str, config: Any) -> str:
    provider = PROVIDERS[name]
    notice = build_notice(recipient="+447700900000")
    with pytest.raises(SendFailed) as failure:
        await provider.send(egress, config, notice)
    assert failure.value.is_permanent
    assert failure.value.code == "delivery_failed"
    return failure.value.message


async def test_a_secret_that_a_provider_repeats_is_removed_from_the_failure(
    loopback: OutboxEgress, providers: ProviderServer, subtests: pytest.Subtests
) -> None:
    providers.respond = lambda call: web.Response(
        status=400, text=f"{'x ' * 230}{call.path} {call.headers} {call.body.decode()}"
    )
    for name in STUBS:
        with subtests.test(provider=name):
            provider = PROVIDERS[name]
            config = configs.validate(provider, providers.config(name), loopback.guard)
            failure = await fail(loopback, name, providers.config(name))
            text = configs.describe_failure(provider, config, failure)
            assert text.startswith("the provider answered 400")
            assert len(text) <= 500
            assert KEY[:12] not in text
            assert "planted" not in text
