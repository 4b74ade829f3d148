from typing import Any

from yarl import URL

from app.domain.tools.configs import WebhookConfig
from app.domain.tools.executors import http
from app.domain.tools.executors.protocol import Surroundings, Task, ToolFailed


async def run(task: Task[WebhookConfig], around: Surroundings) -> dict[str, Any]:
    """The input is the body; a GET has none, so there it is the query."""
    config, url = task.config, URL(task.config.url)
    body: Any = task.input
    if config.method == "GET":
        body, url = None, _with_query(url, task.input)
    call = http.Call(config.method, url, config.headers, body=body)
    return await http.send(around.egress, call, task.auth, task.seconds)


def _with_query(url: URL, given: dict[str, Any]) -> URL:
    """What the config fixes is not for whoever calls to say."""
    query = [*url.query.items()]
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        if any(isinstance(item, dict | list) for item in values):
            raise ToolFailed("runtime_error", f"`{name[:80]}` cannot stand in a query; use POST")
        if name not in url.query:
            query += [(name, http.text_of(item)) for item in values if item is not None]
    return url.with_query(query) if query else url
