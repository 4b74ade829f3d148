from typing import Any

from yarl import URL

from app.domain.agents.tools.configs import WebhookToolConfig
from app.domain.agents.tools.errors import ToolFailed

from . import http
from .protocol import ExecutorEnvironment, Task


async def run(task: Task[WebhookToolConfig], environment: ExecutorEnvironment) -> dict[str, Any]:
    """Sends the input as the JSON body, or as the query of a GET request."""
    config, url = task.config, URL(task.config.url)
    body: Any = task.input
    if config.method == "GET":
        body, url = None, _with_query(url, task.input)
    call = http.Call(config.method, url, config.headers, body=body)
    return await http.send(environment.egress, call, task.auth, task.timeout_seconds)


def _with_query(url: URL, arguments: dict[str, Any]) -> URL:
    """Adds the arguments to the query. They do not replace parameters of the config's URL."""
    query = [*url.query.items()]
    for name, value in arguments.items():
        values = value if isinstance(value, list) else [value]
        if any(isinstance(item, dict | list) for item in values):
            raise ToolFailed("runtime_error", f"`{name[:80]}` does not fit into a query; use POST")
        if name not in url.query:
            query += [(name, http.url_text(item)) for item in values if item is not None]
    return url.with_query(query) if query else url
