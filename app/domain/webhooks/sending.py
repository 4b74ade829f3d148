"""One attempt at a delivery: the request, and what its answer means for the next one."""

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, Literal

import aiohttp
import msgspec
from multidict import CIMultiDict

from app.domain.webhooks import headers, keys, signing
from app.domain.webhooks.keys import Keys
from app.domain.webhooks.parcels import Parcel
from app.kit import clock
from app.kit.crypto import CannotOpen, Keyring
from app.kit.egress import BlockedAddress, Egress, EgressError, custom_headers
from app.kit.redaction import Redactor
from app.kit.texts import storable

TIMEOUT_SECONDS: Final = 15.0
BODY_BYTES: Final = 16 * 1024
_OK, _REDIRECT, _BAD, _GONE = 200, 300, 400, 410
_MOST_HIDDEN = 20_000
_USER_AGENT = "Parley-Webhooks/1"
# As many bytes a redactor's way of writing one character has at most.
_LONGEST_WRITING = 12


class Answer(msgspec.Struct, frozen=True):
    """What came back; without a `code` nothing did. `error` is None where it was delivered."""

    at: datetime
    code: int | None
    milliseconds: int
    error: str | None
    body: str | None = None
    retry_after: float | None = None

    @property
    def is_gone(self) -> bool:
        return self.code == _GONE


class Verdict(msgspec.Struct, frozen=True):
    status: Literal["delivered", "pending", "failed"]
    after_seconds: float | None = None


def judge(answer: Answer, attempt: int, delays: tuple[int, ...], *, most: int) -> Verdict:
    """`delays` holds what is waited before each attempt, the first included."""
    if answer.error is None:
        return Verdict("delivered")
    if answer.is_gone or attempt >= min(most, len(delays)):
        return Verdict("failed")
    wait = float(delays[attempt])
    if answer.retry_after is not None:
        # Not earlier than asked for, and never later than the schedule's longest wait.
        wait = max(wait, min(answer.retry_after, float(max(delays))))
    return Verdict("pending", wait)


async def send(egress: Egress, keyring: Keyring, parcel: Parcel, retries: int) -> Answer:
    at, started = clock.now(), time.perf_counter()
    code, said, retry_after = None, None, None
    try:
        opened = keys.read(keyring, parcel.tenant_id, parcel.webhook_id, parcel.keys)
        problem = egress.guard.problem_with(parcel.url)
        if problem is not None:
            raise BlockedAddress(problem)  # noqa: TRY301
        async with egress.open(
            "POST",
            parcel.url,
            headers=_headers(parcel, opened, int(at.timestamp()), retries),
            body=parcel.body,
            timeout_seconds=TIMEOUT_SECONDS,
        ) as response:
            code = response.status
            retry_after = _retry_after(response.headers.get("Retry-After"))
            said = await _said(opened, response)
        error = _problem(code)
    except CannotOpen:
        error = "its secret cannot be opened with this instance's keys"
    except BlockedAddress as blocked:
        error = f"the address is not allowed: {blocked}"
    except EgressError as failed:
        error = str(failed)
    spent = round((time.perf_counter() - started) * 1000)
    return Answer(at, code, spent, error, said, retry_after)


def _problem(code: int) -> str | None:
    if _OK <= code < _REDIRECT:
        return None
    where = "; redirects are not followed" if _REDIRECT <= code < _BAD else ""
    return f"the endpoint answered {code}{where}"


def _headers(parcel: Parcel, opened: Keys, timestamp: int, retries: int) -> CIMultiDict[str]:
    secrets = opened.signing(parcel.previous_until)
    kept = {name: value for name, value in opened.headers.items() if not headers.is_ours(name)}
    sent = custom_headers(kept)
    sent.setdefault("User-Agent", _USER_AGENT)
    sent["Content-Type"] = "application/json"
    sent["Accept-Encoding"] = "identity"
    sent.update(
        signing.headers(secrets, parcel.event_id, parcel.event_type, timestamp, parcel.body)
    )
    if retries:
        sent["X-Service-Retry-Count"] = str(retries)
    if parcel.test:
        sent["X-Service-Test"] = "true"
    return sent


async def _said(opened: Keys, response: aiohttp.ClientResponse) -> str | None:
    """What is kept of an answer. An endpoint that repeats what it was sent must not show it to
    everybody, nor the beginning of it where the answer is cut.
    """
    hidden = _hidden(opened)
    if sum(map(len, hidden)) > _MOST_HIDDEN:
        # Looking for all of them would take too long.
        return None
    beyond = _LONGEST_WRITING * max(map(len, hidden))
    body = await _read(response, BODY_BYTES + beyond)
    if not body:
        return None
    text = _redactor(hidden).text(storable(body.decode(errors="replace"))).encode()
    if len(body) == BODY_BYTES + beyond:
        text = text[:-beyond]
    return text[:BODY_BYTES].decode(errors="ignore")


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Who says more is not listened to."""
    content = bytearray()
    async for chunk in response.content.iter_chunked(most):
        content += chunk
        if len(content) >= most:
            # Reading the rest could take for ever; the connection is not worth it.
            response.close()
            break
    return bytes(content[:most])


def _hidden(opened: Keys) -> tuple[str, ...]:
    """Its secrets and what its headers hold, with and without a scheme like Bearer."""
    values = [value for name, value in opened.headers.items() if headers.is_secret(name)]
    bare = [value.partition(" ")[2] for value in values]
    return (opened.secret, opened.previous or "", *values, *bare)


@lru_cache(maxsize=256)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)


def _retry_after(given: str | None) -> float | None:
    """Seconds, or a date; one that names no zone is of GMT, as all of HTTP's are."""
    if given is None:
        return None
    text = given.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, until.timestamp() - clock.epoch())
    except (ValueError, OverflowError, TypeError):
        return None
