"""The headers of a delivery: those of its endpoint, and those that identify and sign it."""

import msgspec
from multidict import CIMultiDict

from app.crypto.keyring import CannotOpen, Keyring
from app.domain.messaging.deliveries import endpoint_keys, signing
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from app.domain.messaging.deliveries.requests import DeliveryRequest, SignedHeaders
from app.kit import clock
from app.kit.pacing import Pace
from app.net import headers
from app.net.egress import custom_headers

_USER_AGENT = "Parley-Webhooks/1"
# The caller has a transaction open, which must not wait for hashes of large bodies.
_MAX_BODY_BYTES = 64 * 1024


def sign(keyring: Keyring, request: DeliveryRequest) -> SignedHeaders:
    """Raises CannotOpen where the root key that sealed the endpoint's keys is lost."""
    keys = endpoint_keys.unseal(keyring, request.tenant_id, request.webhook_id, request.keys)
    return SignedHeaders(keys, _build_headers(request, keys))


async def sign_all(keyring: Keyring, requests: list[DeliveryRequest]) -> dict[str, DeliveryRequest]:
    """Returns the requests by delivery. Those with large bodies, and those whose keys cannot be
    opened, are left to their attempts, which sign them or report it.

    One after another, signatures take a third of the time that they take between requests.
    """
    signed: dict[str, DeliveryRequest] = {}
    pace = Pace()
    for request in requests:
        signed[request.delivery_id] = _sign_small(keyring, request)
        await pace.rest()
    return signed


def _sign_small(keyring: Keyring, request: DeliveryRequest) -> DeliveryRequest:
    if len(request.body) > _MAX_BODY_BYTES:
        return request
    try:
        return msgspec.structs.replace(request, signed=sign(keyring, request))
    except CannotOpen:
        return request


def _build_headers(request: DeliveryRequest, keys: EndpointKeys) -> CIMultiDict[str]:
    timestamp = int(clock.now().timestamp())
    secrets = keys.signing_secrets(request.previous_until)
    sent = custom_headers(
        {
            name: value
            for name, value in keys.headers.items()
            if not headers.is_reserved_in_delivery(name)
        }
    )
    sent.setdefault("User-Agent", _USER_AGENT)
    sent["Content-Type"] = "application/json"
    sent["Accept-Encoding"] = "identity"
    sent.update(
        signing.build_headers(
            secrets, request.event_id, request.event_type, timestamp, request.body
        )
    )
    if request.attempts:
        sent["X-Service-Retry-Count"] = str(request.attempts)
    if request.test:
        sent["X-Service-Test"] = "true"
    return sent
