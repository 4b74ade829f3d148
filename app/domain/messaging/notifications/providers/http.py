"""Providers with an HTTP API: its address, requests to it, and what their answers mean."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from multidict import CIMultiDict

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.outbox.api import OutboxEgress, read_body
from app.kit.texts import storable
from app.net.egress import BlockedAddress, EgressError
from app.net.retry_after import parse_retry_after

from . import addresses
from .protocol import Line, Provider, ProviderConfig, SendFailed, Token

TIMEOUT_SECONDS = 15.0
# Of an answer that accepts a message, which may repeat it, and of one that explains a refusal.
_MAX_ACCEPTED_BYTES = 1024 * 1024
_MAX_REFUSED_BYTES = 32 * 1024
_TOO_MANY = 429
_SUCCESS = range(200, 300)
_SERVER_ERROR = 500
# Too early, too many, the server took too long, or (Resend) an earlier attempt with the same
# idempotency key is not finished: the same request may succeed later.
_TEMPORARY = {408, 409, 425, 429}

# Returns the provider's explanation in a decoded JSON body, if it has one.
Explain = Callable[[Any], object]


class HostedProvider(Provider):
    """A provider whose config has `api_base`."""

    def urls(self, config: Any) -> dict[str, str]:
        return {"api_base": config.api_base}

    def destination(self, config: Any) -> tuple[Any, ...]:
        return (deliveries.origin_of(config.api_base),)

    def endpoint(self, config: Any, path: str) -> str:
        """Returns the URL of a path below `api_base`."""
        return f"{config.api_base.rstrip('/')}/{path}"


class HostedMailProvider(HostedProvider):
    """A provider whose config has the address that mails are `from`."""

    channel_type = "email"

    def find_problem(self, config: Any) -> tuple[str, str] | None:
        return addresses.find_problem(config.sender, config.to)


class HostedMailConfig(ProviderConfig, frozen=True, kw_only=True):
    api_key: Token
    sender: Line = msgspec.field(name="from")


class _Answer(NamedTuple):
    """`body` is empty when it was too long to be read as a whole."""

    status: int
    retry_after: float | None
    body: bytes


async def post_json(
    egress: OutboxEgress, url: str, body: Any, headers: Mapping[str, str], explain: Explain
) -> Any:
    """Returns the decoded answer, or None where it is no JSON."""
    headers = {**headers, "Content-Type": "application/json"}
    return await send(egress, "POST", url, msgspec.json.encode(body), headers, explain)


async def post_form(
    egress: OutboxEgress,
    url: str,
    fields: dict[str, str],
    headers: Mapping[str, str],
    explain: Explain,
) -> Any:
    """Returns the decoded answer, or None where it is no JSON."""
    headers = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
    return await send(egress, "POST", url, urlencode(fields).encode(), headers, explain)


async def send(
    egress: OutboxEgress,
    method: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    explain: Explain | None,
) -> Any:
    """Sends a request and returns the decoded answer, or None where it is no JSON. Raises
    SendFailed unless the answer is a 2xx. Without `explain` its message has no text of the server.
    """
    try:
        answer = await _request(egress, method, url, body, headers)
    except EgressError as error:
        is_permanent = isinstance(error, BlockedAddress)
        message = f"no answer: {error}"
        raise SendFailed(message, code="delivery_failed", is_permanent=is_permanent) from error
    decoded = _decode(answer.body)
    if answer.status not in _SUCCESS:
        raise _failure(answer, _read_explanation(answer, decoded, explain) if explain else "")
    return decoded


async def _request(
    egress: OutboxEgress, method: str, url: str, body: bytes, headers: Mapping[str, str]
) -> _Answer:
    all_headers = CIMultiDict({"User-Agent": "Parley-Notifications/1"})
    all_headers.update(headers)
    all_headers["Accept-Encoding"] = "identity"
    async with egress.open(
        method, url, headers=all_headers, body=body, timeout_seconds=TIMEOUT_SECONDS
    ) as response:
        retry_after = parse_retry_after(response.headers.get("Retry-After"))
        is_accepted = response.status in _SUCCESS
        max_bytes = _MAX_ACCEPTED_BYTES if is_accepted else _MAX_REFUSED_BYTES
        content = await read_body(response, max_bytes + 1)
    # The status alone says whether a retry is due, and a part of the body may end within a secret,
    # which would not be recognized.
    return _Answer(response.status, retry_after, content if len(content) <= max_bytes else b"")


def _failure(answer: _Answer, explanation: str) -> SendFailed:
    status = answer.status
    return SendFailed(
        f"the provider answered {status}: {explanation}".removesuffix(": "),
        is_permanent=status < _SERVER_ERROR and status not in _TEMPORARY,
        is_throttled=status == _TOO_MANY,
        retry_after=answer.retry_after,
    )


def _read_explanation(answer: _Answer, decoded: Any, explain: Explain) -> str:
    try:
        explanation = explain(decoded)
    except (LookupError, TypeError, AttributeError):
        # The body has another shape than the provider documents.
        explanation = None
    if not isinstance(explanation, str) or not explanation:
        explanation = answer.body.decode(errors="replace")
    return " ".join(storable(explanation).split())


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
