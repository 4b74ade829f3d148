"""The executor of each type of tool."""

from typing import Any, Final

from app.domain.agents.tools.configs import DatabaseConfig

from . import custom, function, rest_api, script, webhook
from .protocol import Executor, ExecutorEnvironment, Task


async def _run_database(
    task: Task[DatabaseConfig], environment: ExecutorEnvironment
) -> dict[str, Any]:
    from . import database

    return await database.run(task, environment)


EXECUTORS: Final[dict[str, Executor[Any]]] = {
    "rest_api": rest_api.run,
    "webhook": webhook.run,
    "function": function.run,
    "script": script.run,
    "database": _run_database,
    "custom": custom.run,
}
