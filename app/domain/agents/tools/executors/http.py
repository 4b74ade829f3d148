"""Sends HTTP requests for the executors of REST APIs and webhooks."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from multidict import CIMultiDict
from yarl import URL

from app.domain.agents.tools.errors import ToolFailed
from app.net.egress import Answer, BlockedAddress, Egress, EgressError, custom_headers
from app.net.headers import fold_name, is_secret

from .protocol import OUTPUT_BYTES, Auth, egress_failure, require_http_auth

_BAD, _UNAUTHORIZED, _SERVER_ERROR = 400, 401, 500
# Response headers that the output omits: about the connection only, or private.
_OMITTED_HEADERS = {
    "set-cookie",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-encoding",
}
_BACKOFF_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 5.0


class Call(msgspec.Struct, frozen=True):
    """`headers` are those of the config. `input_headers`, from the input, replace them, except
    what authenticates the tool.
    """

    method: str
    url: URL
    headers: Mapping[str, str]
    input_headers: Mapping[str, str] = {}
    body: Any = None
    retries: int = 0


async def send(egress: Egress, call: Call, auth: Auth, seconds: float) -> dict[str, Any]:
    """Returns the response as output. Renews a rejected token once, and retries server errors and
    failed connections `call.retries` times.
    """
    answer = await _request_with_retries(egress, call, require_http_auth(auth), seconds)
    if answer.status == _UNAUTHORIZED and auth.renew is not None:
        answer = await _request_with_retries(egress, call, await auth.renew(), seconds)
    output = _build_output(answer)
    if answer.status >= _BAD:
        raise ToolFailed("http_error", f"the endpoint answered {answer.status}", output)
    return output


async def _request_with_retries(egress: Egress, call: Call, auth: Auth, seconds: float) -> Answer:
    attempt = 0
    while True:
        try:
            answer = await _request(egress, call, auth, seconds)
            if answer.status < _SERVER_ERROR or attempt >= call.retries:
                return answer
        except BlockedAddress as error:
            raise egress_failure(error) from error
        except EgressError as error:
            if error.code != "connection_error" or attempt >= call.retries:
                raise egress_failure(error) from error
        await asyncio.sleep(min(_BACKOFF_SECONDS * 2**attempt, _MAX_BACKOFF_SECONDS))
        attempt += 1


async def _request(egress: Egress, call: Call, auth: Auth, seconds: float) -> Answer:
    content_type, body = None, None
    if isinstance(call.body, str):
        content_type, body = "text/plain; charset=utf-8", call.body.encode()
    elif call.body is not None:
        content_type, body = "application/json", msgspec.json.encode(call.body)
    url = call.url.update_query(auth.params) if auth.params else call.url
    return await egress.request(
        call.method,
        url,
        headers=_merge_headers(call, auth, content_type),
        body=body,
        timeout_seconds=seconds,
        max_bytes=OUTPUT_BYTES,
    )


def _merge_headers(call: Call, auth: Auth, content_type: str | None) -> CIMultiDict[str]:
    """Later headers replace earlier ones, also if one has `_` where the other has `-`."""
    config_headers = custom_headers(call.headers)
    config_names = set(map(fold_name, config_headers))
    has_auth = bool(auth.headers or auth.params)
    merged = {"accept": ("Accept", "application/json, */*;q=0.5")}
    if content_type is not None:
        merged["content-type"] = ("Content-Type", content_type)
    merged |= {fold_name(name): (name, value) for name, value in config_headers.items()}
    for name, value in custom_headers(call.input_headers).items():
        # The caller does not decide what authenticates the tool.
        if not is_secret(name) or not (has_auth or fold_name(name) in config_names):
            merged[fold_name(name)] = (name, value)
    for name, value in custom_headers(auth.headers).items():
        merged[fold_name(name)] = (name, value)
    return CIMultiDict(merged.values())


def url_text(value: Any) -> str:
    """Returns a value as a text for a URL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if not isinstance(value, list | dict) else msgspec.json.encode(value).decode()


def _build_output(answer: Answer) -> dict[str, Any]:
    headers = {
        name.lower(): value
        for name, value in answer.headers.items()
        if name.lower() not in _OMITTED_HEADERS
    }
    return {
        "status_code": answer.status,
        "headers": headers,
        "body": _decode_body(answer.body, headers.get("content-type", "")),
    }


def _decode_body(content: bytes, content_type: str) -> Any:
    """Returns JSON values, else a text, else base64."""
    if not content:
        return None
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type.endswith(("/json", "+json")) or not media_type:
        try:
            return msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
