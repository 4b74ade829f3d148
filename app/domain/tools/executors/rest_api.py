import re
from typing import Any
from urllib.parse import quote

import msgspec
from yarl import URL

from app.domain.tools.configs import Endpoint, RestApiConfig, RestInput
from app.domain.tools.executors import http
from app.domain.tools.executors.protocol import Surroundings, Task, ToolFailed

_PARAM = re.compile(r"\{([^{}/]+)\}")
_DOTS = {".": "%2E", "..": "%2E%2E"}


async def run(task: Task[RestApiConfig], around: Surroundings) -> dict[str, Any]:
    try:
        given = msgspec.convert(task.input, RestInput)
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", f"the input cannot be used: {error}") from error
    endpoint = _chosen(task.config, given.endpoint)
    call = http.Call(
        endpoint.method,
        address(task.config.base_url, endpoint, endpoint.default_params | given.params),
        {**given.headers, **endpoint.default_headers},
        given.body,
        task.config.retry_count,
    )
    return await http.send(around.egress, call, task.auth, task.seconds)


def _chosen(config: RestApiConfig, name: str | None) -> Endpoint:
    if name is None and len(config.endpoints) == 1:
        return next(iter(config.endpoints.values()))
    found = config.endpoints.get(name or "")
    if found is None:
        known = ", ".join(list(config.endpoints)[:20])
        raise ToolFailed("runtime_error", f"say in `endpoint` which one to call: {known}")
    return found


def address(base_url: str, endpoint: Endpoint, params: dict[str, Any]) -> URL:
    """Parameters fill the path, each as one piece whatever it holds; the rest is the query."""
    path, _, fixed = endpoint.path.partition("?")
    names = _PARAM.findall(path)
    missing = [name for name in names if params.get(name) is None]
    if missing:
        raise ToolFailed("runtime_error", f"the path needs {', '.join(missing)} in `params`")
    filled = _PARAM.sub(lambda match: _piece(params[match.group(1)]), path)
    base = URL(base_url)
    whole = base.raw_path.rstrip("/") + filled
    url = base.with_path("/").with_query(None)
    target = URL(f"{str(url).rstrip('/')}{_plain(whole)}", encoded=True)
    query = [*base.query.items(), *URL(f"/?{fixed}").query.items()]
    for name, value in params.items():
        if name not in names and value is not None:
            query += [
                (name, _text(item)) for item in (value if isinstance(value, list) else [value])
            ]
    return target.with_query(query) if query else target


def _piece(value: Any) -> str:
    text = _text(value)
    return _DOTS.get(text) or quote(text, safe="")


def _plain(path: str) -> str:
    """What a config's path has in it that no URL may."""
    return quote(path, safe="/%:@!$&'()*+,;=-._~")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if not isinstance(value, list | dict) else msgspec.json.encode(value).decode()
