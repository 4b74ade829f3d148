"""Sends the requests of search engines."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from yarl import URL

from app.net.egress import BlockedAddress, Egress, EgressError, EgressTimeout, ResponseTooLarge

from .protocol import SearchFailed

SECONDS: Final = 10.0
_MAX_BYTES = 2 * 1024 * 1024
_OK = 200
_KEY_REFUSED = {401, 403}
# DuckDuckGo asks for a proof that a person searches with 202.
_TOO_OFTEN = {202, 429}


async def fetch(
    egress: Egress,
    method: str,
    url: URL,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> bytes:
    """Returns the body of a response with status 200. Follows no redirect."""
    try:
        answer = await egress.request(
            method, url, headers=headers, body=body, timeout_seconds=SECONDS, max_bytes=_MAX_BYTES
        )
    except EgressTimeout as error:
        raise SearchFailed("timeout", "the search engine did not answer in time") from error
    except BlockedAddress as error:
        message = "the address of the search engine is not allowed"
        raise SearchFailed("blocked_address", message) from error
    except ResponseTooLarge as error:
        raise SearchFailed("bad_response", "the search engine's answer is too large") from error
    except EgressError as error:
        raise SearchFailed("unreachable", "the search engine cannot be reached") from error
    if answer.status != _OK:
        raise SearchFailed("refused", _explain_status(answer.status), answer.status)
    return answer.body


def _explain_status(status: int) -> str:
    if status in _KEY_REFUSED:
        return f"the search engine refused the request, with status {status}"
    if status in _TOO_OFTEN:
        return "the search engine accepts no more requests for now; try again later"
    return f"the search engine answered with status {status}"


def decode_json(body: bytes, kind: type[msgspec.Struct]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SearchFailed("bad_response", "the search engine's answer cannot be read") from error


def as_text(value: Any) -> str:
    """Returns "" for what is no text: one odd result does not spoil the others."""
    return value if isinstance(value, str) else ""
