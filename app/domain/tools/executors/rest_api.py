import re
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from yarl import URL

from app.domain.tools.configs import Endpoint, RestApiConfig, RestInput
from app.domain.tools.executors import http
from app.domain.tools.executors.protocol import Surroundings, Task, ToolFailed

_PARAM = re.compile(r"\{([^{}/]+)\}")
_DOTS = {".", ".."}
_BETWEEN = re.compile(r"[/\\]")


async def run(task: Task[RestApiConfig], around: Surroundings) -> dict[str, Any]:
    try:
        given = msgspec.convert(task.input, RestInput)
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", f"the input cannot be used: {error}") from error
    endpoint = _chosen(task.config, given.endpoint)
    call = http.Call(
        endpoint.method,
        address(task.config.base_url, endpoint, endpoint.default_params | given.params),
        endpoint.default_headers,
        given.headers,
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
    names = _PARAM.findall(endpoint.path)
    missing = [name for name in names if params.get(name) is None or params[name] == ""]
    if missing:
        raise ToolFailed("runtime_error", f"the path needs {', '.join(missing)} in `params`")
    base = URL(base_url)
    whole = base.raw_path.rstrip("/") + _filled(path, params)
    url = base.with_path("/").with_query(None)
    target = URL(f"{str(url).rstrip('/')}{_plain(whole)}", encoded=True)
    query = [*base.query.items()]
    for name, value in URL(f"/?{fixed}").query.items():
        query.append((name, _PARAM.sub(lambda match: http.text_of(params[match.group(1)]), value)))
    # What the config fixes is not for whoever calls to say.
    taken = {*names, *(name for name, _ in query)}
    for name, value in params.items():
        if name not in taken:
            values = value if isinstance(value, list) else [value]
            query += [(name, http.text_of(item)) for item in values if item is not None]
    return target.with_query(query) if query else target


def _filled(path: str, params: dict[str, Any]) -> str:
    """Each parameter is one piece of the path: what would lead elsewhere is encoded, dots too."""
    filled = _PARAM.sub(lambda match: _piece(http.text_of(params[match.group(1)])), path)
    if not _DOTS.isdisjoint(filled.split("/")):
        raise ToolFailed("runtime_error", "`params` must not put . or .. into the path")
    return filled


def _piece(text: str) -> str:
    encoded = quote(text, safe="")
    climbs = not _DOTS.isdisjoint(_BETWEEN.split(unquote(text)))
    return encoded.replace(".", "%2E") if climbs else encoded


def _plain(path: str) -> str:
    """What a config's path has in it that no URL may."""
    return quote(path, safe="/%:@!$&'()*+,;=-._~")
