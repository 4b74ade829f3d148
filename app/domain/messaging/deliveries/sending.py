"""One attempt at a delivery: the request, and what its response means for the next attempt."""

import time
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal

import aiohttp
import msgspec

from app.crypto.keyring import CannotOpen, Keyring
from app.domain.messaging.deliveries import request_headers
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from app.domain.messaging.deliveries.requests import DeliveryRequest
from app.kit import clock
from app.kit.texts import storable
from app.net import headers
from app.net.egress import BlockedAddress, Egress, EgressError, Guard
from app.net.redaction import Redactor
from app.net.retry_after import parse_retry_after

TIMEOUT_SECONDS: Final = 15.0
BODY_BYTES: Final = 16 * 1024
_OK, _REDIRECT, _BAD, _GONE = 200, 300, 400, 410
_MAX_HIDDEN_CHARS = 20_000
# The most bytes that any encoding the redactor knows uses for one character.
_MAX_ENCODED_BYTES = 12


class Attempt(msgspec.Struct, frozen=True):
    """`code` is None where no response came; `error` is None where the event was delivered."""

    at: datetime
    code: int | None
    milliseconds: int
    error: str | None
    body: str | None = None
    retry_after: float | None = None

    @property
    def is_gone(self) -> bool:
        return self.code == _GONE


class NextStep(msgspec.Struct, frozen=True):
    status: Literal["delivered", "pending", "failed"]
    after_seconds: float | None = None


def next_step(
    attempt: Attempt, number: int, delays: tuple[int, ...], *, max_attempts: int
) -> NextStep:
    """`delays` holds the wait before each attempt, the first included."""
    if attempt.error is None:
        return NextStep("delivered")
    if attempt.is_gone or number >= min(max_attempts, len(delays)):
        return NextStep("failed")
    wait = float(delays[number])
    if attempt.retry_after is not None:
        # Not earlier than requested, and not later than the schedule's longest wait.
        wait = max(wait, min(attempt.retry_after, float(max(delays))))
    return NextStep("pending", wait)


async def send(egress: Egress, keyring: Keyring, request: DeliveryRequest) -> Attempt:
    at, started = clock.now(), time.perf_counter()
    code, body, retry_after = None, None, None
    try:
        signed = request.signed or request_headers.sign(keyring, request)
        problem = egress.guard.problem_with(request.url)
        if problem is not None:
            raise BlockedAddress(problem)  # noqa: TRY301
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
        error = "its secret cannot be opened with this instance's keys"
    except BlockedAddress as blocked:
        error = f"the address is not allowed: {blocked}"
    except EgressError as failed:
        error = str(failed)
    spent = round((time.perf_counter() - started) * 1000)
    return Attempt(at, code, spent, error, body, retry_after)


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
    body = await _read(response, BODY_BYTES + overlap)
    if not body:
        return None
    text = _redactor(secrets).text(storable(body.decode(errors="replace"))).encode()
    if len(body) == BODY_BYTES + overlap:
        text = text[:-overlap]
    return text[:BODY_BYTES].decode(errors="ignore")


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_chunked(max_bytes):
        content += chunk
        if len(content) >= max_bytes:
            # The rest may be endless; the connection is not reused.
            response.close()
            break
    return bytes(content[:max_bytes])


def _secrets(keys: EndpointKeys) -> tuple[str, ...]:
    """Returns signing secrets and secret headers, with and without a scheme like Bearer."""
    values = [value for name, value in keys.headers.items() if headers.is_secret(name)]
    bare = [value.partition(" ")[2] for value in values]
    return (keys.secret, keys.previous or "", *values, *bare)


@lru_cache(maxsize=256)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)


class DeliveryEgress(Egress):
    """Without connection limits, which the courier has. Does not decompress response bodies, which
    are stored in part.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__(guard, limit=0, per_host=0, decompress=False)
