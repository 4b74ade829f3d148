"""What the executors that speak HTTP share."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from multidict import CIMultiDict
from yarl import URL

from app.domain.tools.executors.protocol import (
    OUTPUT_BYTES,
    Auth,
    ToolFailed,
    of_the_way,
    over_http,
)
from app.kit.egress import Answer, BlockedAddress, Egress, EgressError, custom_headers

_BAD, _UNAUTHORIZED, _SERVER_ERROR = 400, 401, 500
# Of no use to whoever reads the output, or not theirs to see.
_LEFT_OUT = {"set-cookie", "connection", "keep-alive", "transfer-encoding", "content-encoding"}
_BACKOFF_SECONDS = 0.2
_LONGEST_BACKOFF_SECONDS = 5.0


class Call(msgspec.Struct, frozen=True):
    """`headers` are the config's own; a caller's `more` do not replace them."""

    method: str
    url: URL
    headers: Mapping[str, str]
    more: Mapping[str, str] = {}
    body: Any = None
    retries: int = 0


async def send(egress: Egress, call: Call, auth: Auth, seconds: float) -> dict[str, Any]:
    """The answer as output. A refused token is renewed once; what may pass is tried again."""
    answer = await _tried(egress, call, over_http(auth), seconds)
    if answer.status == _UNAUTHORIZED and auth.renew is not None:
        answer = await _tried(egress, call, await auth.renew(), seconds)
    output = _output(answer)
    if answer.status >= _BAD:
        raise ToolFailed("http_error", f"the endpoint answered {answer.status}", output)
    return output


async def _tried(egress: Egress, call: Call, auth: Auth, seconds: float) -> Answer:
    attempt = 0
    while True:
        try:
            answer = await _once(egress, call, auth, seconds)
            if answer.status < _SERVER_ERROR or attempt >= call.retries:
                return answer
        except BlockedAddress as error:
            raise of_the_way(error) from error
        except EgressError as error:
            if error.code != "connection_error" or attempt >= call.retries:
                raise of_the_way(error) from error
        await asyncio.sleep(min(_BACKOFF_SECONDS * 2**attempt, _LONGEST_BACKOFF_SECONDS))
        attempt += 1


async def _once(egress: Egress, call: Call, auth: Auth, seconds: float) -> Answer:
    headers: CIMultiDict[str] = CIMultiDict({"Accept": "application/json, */*;q=0.5"})
    body = None
    if call.body is not None:
        headers["Content-Type"] = "application/json"
        body = msgspec.json.encode(call.body)
        if isinstance(call.body, str):
            headers["Content-Type"] = "text/plain; charset=utf-8"
            body = call.body.encode()
    headers.update(custom_headers(call.more))
    headers.update(custom_headers(call.headers))
    headers.update(custom_headers(auth.headers))
    url = call.url.update_query(auth.params) if auth.params else call.url
    return await egress.request(
        call.method,
        url,
        headers=headers,
        body=body,
        timeout_seconds=seconds,
        max_bytes=OUTPUT_BYTES,
    )


def text_of(value: Any) -> str:
    """A value as it stands in a URL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if not isinstance(value, list | dict) else msgspec.json.encode(value).decode()


def _output(answer: Answer) -> dict[str, Any]:
    headers = {
        name.lower(): value
        for name, value in answer.headers.items()
        if name.lower() not in _LEFT_OUT
    }
    return {
        "status_code": answer.status,
        "headers": headers,
        "body": _body(answer.body, headers.get("content-type", "")),
    }


def _body(content: bytes, media_type: str) -> Any:
    if not content:
        return None
    kind = media_type.partition(";")[0].strip().lower()
    if kind.endswith(("/json", "+json")) or not kind:
        try:
            return msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
