import re
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from yarl import URL

from app.domain.agents.tools.configs import Endpoint, RestApiConfig, RestInput
from app.domain.agents.tools.errors import ToolFailed

from . import http
from .protocol import ExecutorEnvironment, Task

_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")
_DOT_SEGMENTS = {".", ".."}
_SEPARATOR = re.compile(r"[/\\]")


async def run(task: Task[RestApiConfig], environment: ExecutorEnvironment) -> dict[str, Any]:
    try:
        arguments = msgspec.convert(task.input, RestInput)
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", f"the input cannot be used: {error}") from error
    endpoint = _find_endpoint(task.config, arguments.endpoint)
    call = http.Call(
        endpoint.method,
        _build_url(task.config.base_url, endpoint, endpoint.default_params | arguments.params),
        endpoint.default_headers,
        arguments.headers,
        arguments.body,
        task.config.retry_count,
    )
    return await http.send(environment.egress, call, task.auth, task.timeout_seconds)


def _find_endpoint(config: RestApiConfig, name: str | None) -> Endpoint:
    if name is None and len(config.endpoints) == 1:
        return next(iter(config.endpoints.values()))
    endpoint = config.endpoints.get(name or "")
    if endpoint is None:
        names = ", ".join(list(config.endpoints)[:20])
        raise ToolFailed("runtime_error", f"set `endpoint` to one of these: {names}")
    return endpoint


def _build_url(base_url: str, endpoint: Endpoint, params: dict[str, Any]) -> URL:
    """Puts parameters into the placeholders of the path, and all others into the query."""
    path, _, fixed_query = endpoint.path.partition("?")
    names = _PLACEHOLDER.findall(endpoint.path)
    missing = [name for name in names if params.get(name) is None or params[name] == ""]
    if missing:
        raise ToolFailed("runtime_error", f"the path needs {', '.join(missing)} in `params`")
    base = URL(base_url)
    full_path = base.raw_path.rstrip("/") + _fill_path(path, params)
    origin = str(base.with_path("/").with_query(None)).rstrip("/")
    url = URL(f"{origin}{_encode_path(full_path)}", encoded=True)
    query = [*base.query.items()]
    for name, value in URL(f"/?{fixed_query}").query.items():
        text = _PLACEHOLDER.sub(lambda match: http.url_text(params[match.group(1)]), value)
        query.append((name, text))
    # The input does not replace query parameters of the config.
    used_names = {*names, *(name for name, _ in query)}
    for name, value in params.items():
        if name not in used_names:
            values = value if isinstance(value, list) else [value]
            query += [(name, http.url_text(item)) for item in values if item is not None]
    return url.with_query(query) if query else url


def _fill_path(path: str, params: dict[str, Any]) -> str:
    """Replaces each placeholder by one path segment."""

    def encode(match: re.Match[str]) -> str:
        return _encode_segment(http.url_text(params[match.group(1)]))

    full_path = _PLACEHOLDER.sub(encode, path)
    if not _DOT_SEGMENTS.isdisjoint(full_path.split("/")):
        raise ToolFailed("runtime_error", "`params` must not put . or .. into the path")
    return full_path


def _encode_segment(text: str) -> str:
    """Encodes slashes, and also dots where they would be `.` or `..` segments."""
    encoded = quote(text, safe="")
    has_dot_segment = not _DOT_SEGMENTS.isdisjoint(_SEPARATOR.split(unquote(text)))
    return encoded.replace(".", "%2E") if has_dot_segment else encoded


def _encode_path(path: str) -> str:
    """Encodes the characters that a URL path may not have; keeps what is encoded already."""
    return quote(path, safe="/%:@!$&'()*+,;=-._~")
