"""Requests that are signed before they are sent."""

from app.crypto.keyring import Keyring
from app.domain.messaging.deliveries import endpoint_keys, signing
from app.domain.messaging.deliveries import requests as delivery_requests
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from app.domain.messaging.deliveries.requests import DeliveryRequest


def _request(webhook_id: str, sealed: bytes, body: bytes = b"{}") -> DeliveryRequest:
    return DeliveryRequest(
        delivery_id=f"dlv_{webhook_id}",
        tenant_id="ten_1",
        endpoint_id=webhook_id,
        url="https://example.com/hook",
        active=True,
        keys=sealed,
        previous_until=None,
        event_id="evt_1",
        event_type="agent.created",
        is_test=False,
        attempts=0,
        body=body,
    )


async def test_each_is_signed_with_the_keys_of_its_endpoint() -> None:
    keyring = Keyring.parse(Keyring.generate("k1"))
    secrets = {webhook_id: signing.new_secret() for webhook_id in ("whk_1", "whk_2")}
    requests = [
        _request(id_, endpoint_keys.seal(keyring, "ten_1", id_, EndpointKeys(secret)))
        for id_, secret in secrets.items()
    ]
    signed = await delivery_requests.sign_all(keyring, requests)
    assert list(signed) == ["dlv_whk_1", "dlv_whk_2"]
    for request in signed.values():
        assert request.signed is not None
        headers = request.signed.headers
        timestamp = int(headers["X-Service-Timestamp"])
        expected = signing.sign(secrets[request.endpoint_id], timestamp, b"{}")
        assert headers["X-Service-Signature"] == expected


async def test_keys_that_cannot_be_opened_leave_their_request_unsigned() -> None:
    keyring, lost = (Keyring.parse(Keyring.generate(kid)) for kid in ("k1", "k0"))
    keys = EndpointKeys(signing.new_secret())
    closed = _request("whk_1", endpoint_keys.seal(lost, "ten_1", "whk_1", keys))
    opened = _request("whk_2", endpoint_keys.seal(keyring, "ten_1", "whk_2", keys))
    signed = await delivery_requests.sign_all(keyring, [closed, opened])
    assert signed["dlv_whk_1"] is closed
    assert signed["dlv_whk_2"].signed is not None


async def test_a_request_with_a_large_body_is_left_to_its_attempt() -> None:
    keyring = Keyring.parse(Keyring.generate("k1"))
    sealed = endpoint_keys.seal(keyring, "ten_1", "whk_1", EndpointKeys(signing.new_secret()))
    large = _request("whk_1", sealed, body=b"x" * 100_000)
    assert await delivery_requests.sign_all(keyring, [large]) == {"dlv_whk_1": large}


async def test_a_signed_request_does_not_show_its_secrets() -> None:
    """It waits in memory with opened keys, and may be named in an error or a log line."""
    keyring = Keyring.parse(Keyring.generate("k1"))
    keys = EndpointKeys(signing.new_secret(), signing.new_secret(), {"X-Key": "hidden-value"})
    sealed = endpoint_keys.seal(keyring, "ten_1", "whk_1", keys)
    signed = await delivery_requests.sign_all(keyring, [_request("whk_1", sealed)])
    shown = f"{signed['dlv_whk_1']!r} {keys!r}"
    assert not any(text in shown for text in (keys.secret, keys.previous or "?", "hidden-value"))
