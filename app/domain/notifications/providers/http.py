"""Requests to the HTTP APIs of providers, and what their answers mean."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from app.domain.notifications.providers.protocol import SendFailed
from app.kit.egress import Answer, Egress, EgressError
from app.kit.retry_after import parse_retry_after
from app.kit.texts import storable

TIMEOUT_SECONDS = 15.0
_MAX_BYTES = 64 * 1024
_MAX_CHARS = 500
_SUCCESS = range(200, 300)
_SERVER_ERROR = 500
# Too early, too many, or the server took too long: the same request may succeed later.
_TEMPORARY = {408, 425, 429}

# Returns the provider's explanation in a decoded JSON body, if it has one.
Explain = Callable[[Any], object]


async def post_json(
    egress: Egress, url: str, body: Any, headers: Mapping[str, str], explain: Explain
) -> Any:
    """Returns the decoded answer, or None where it is no JSON."""
    headers = {**headers, "Content-Type": "application/json"}
    return await send(egress, "POST", url, msgspec.json.encode(body), headers, explain)


async def send(
    egress: Egress, method: str, url: str, body: bytes, headers: Mapping[str, str], explain: Explain
) -> Any:
    """Sends a request. Raises SendFailed unless the answer is a 2xx."""
    try:
        answer = await egress.request(
            method,
            url,
            headers={"User-Agent": "Parley-Notifications/1", **headers},
            body=body,
            timeout_seconds=TIMEOUT_SECONDS,
            max_bytes=_MAX_BYTES,
        )
    except EgressError as error:
        raise SendFailed(f"no answer: {error}", code="delivery_failed") from error
    decoded = _decode(answer.body)
    if answer.status not in _SUCCESS:
        raise _failure(answer, _read_explanation(answer, decoded, explain))
    return decoded


def _failure(answer: Answer, explanation: str) -> SendFailed:
    status = answer.status
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return SendFailed(
        f"the provider answered {status}: {explanation}".removesuffix(": "),
        is_permanent=status < _SERVER_ERROR and status not in _TEMPORARY,
        retry_after=parse_retry_after(headers.get("retry-after")),
    )


def _read_explanation(answer: Answer, decoded: Any, explain: Explain) -> str:
    try:
        explanation = explain(decoded)
    except (LookupError, TypeError, AttributeError):
        # The body has another shape than the provider documents.
        explanation = None
    if not isinstance(explanation, str) or not explanation:
        explanation = answer.body[: 4 * _MAX_CHARS].decode(errors="replace").strip()
    return storable(explanation)[:_MAX_CHARS]


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
