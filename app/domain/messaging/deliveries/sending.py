"""One attempt at a delivery: the request, and the part of its response that is stored."""

import time
from functools import lru_cache
from typing import Final

import aiohttp

from app.crypto.keyring import CannotOpen, Keyring
from app.domain.messaging.outbox.api import Attempt, OutboxEgress, read_body
from app.kit import clock
from app.kit.texts import storable
from app.net import headers
from app.net.egress import BlockedAddress, EgressError
from app.net.redaction import Redactor
from app.net.retry_after import parse_retry_after

from . import requests
from .endpoint_keys import EndpointKeys
from .requests import DeliveryRequest

TIMEOUT_SECONDS: Final = 15.0
BODY_BYTES: Final = 16 * 1024
_OK, _REDIRECT, _BAD, GONE = 200, 300, 400, 410
_MAX_HIDDEN_CHARS = 20_000
# The most bytes that any encoding the redactor knows uses for one character.
_MAX_ENCODED_BYTES = 12


async def send(egress: OutboxEgress, keyring: Keyring, request: DeliveryRequest) -> Attempt:
    at, started = clock.now(), time.perf_counter()
    code, body, retry_after = None, None, None
    try:
        signed = request.signed or requests.sign(keyring, request)
        async with egress.open(
            "POST",
            request.url,
            headers=signed.headers,
            body=request.body,
            timeout_seconds=TIMEOUT_SECONDS,
        ) as response:
            code = response.status
            retry_after = parse_retry_after(response.headers.get("Retry-After"))
            body = await _read_redacted(signed.keys, response)
        error = _status_error(code)
    except CannotOpen:
        error = "its secret cannot be decrypted with this instance's keys"
    except BlockedAddress as blocked:
        error = f"the address is not allowed: {blocked}"
    except EgressError as failed:
        error = str(failed)
    return Attempt(
        at=at,
        milliseconds=round((time.perf_counter() - started) * 1000),
        error=error,
        response_code=code,
        response_body=body,
        is_permanent=code == GONE,
        retry_after=retry_after,
    )


def _status_error(code: int) -> str | None:
    if _OK <= code < _REDIRECT:
        return None
    hint = "; redirects are not followed" if _REDIRECT <= code < _BAD else ""
    return f"the endpoint answered {code}{hint}"


async def _read_redacted(keys: EndpointKeys, response: aiohttp.ClientResponse) -> str | None:
    """Returns the part of a body that is stored, without the secrets that an endpoint may echo,
    also where one is cut at the end.
    """
    secrets = _secrets(keys)
    if sum(map(len, secrets)) > _MAX_HIDDEN_CHARS:
        # Searching for all of them would take too long.
        return None
    overlap = _MAX_ENCODED_BYTES * max(map(len, secrets))
    body = await read_body(response, BODY_BYTES + overlap)
    if not body:
        return None
    text = _redactor(secrets).text(storable(body.decode(errors="replace"))).encode()
    if len(body) == BODY_BYTES + overlap:
        text = text[:-overlap]
    return text[:BODY_BYTES].decode(errors="ignore")


def _secrets(keys: EndpointKeys) -> tuple[str, ...]:
    """Returns signing secrets and secret headers, with and without a scheme like Bearer."""
    values = [value for name, value in keys.headers.items() if headers.is_secret(name)]
    bare = [value.partition(" ")[2] for value in values]
    return (keys.secret, keys.previous or "", *values, *bare)


@lru_cache(maxsize=256)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)
