from typing import Any

from yarl import URL

from app.domain.tools.configs import WebhookConfig
from app.domain.tools.executors import http
from app.domain.tools.executors.protocol import Surroundings, Task


async def run(task: Task[WebhookConfig], around: Surroundings) -> dict[str, Any]:
    """The input is the body; where a method has none, its plain values are the query."""
    config, url = task.config, URL(task.config.url)
    body: Any = task.input
    if config.method in {"GET", "DELETE"}:
        body = None
        plain = {
            name: str(value)
            for name, value in task.input.items()
            if isinstance(value, str | int | float)
        }
        url = url.update_query(plain)
    call = http.Call(config.method, url, config.headers, body)
    return await http.send(around.egress, call, task.auth, task.seconds)
