"""The executor of each type of tool."""

from typing import Any, Final

from app.domain.tools.executors import custom, database, function, rest_api, script, webhook
from app.domain.tools.executors.protocol import Executor

EXECUTORS: Final[dict[str, Executor[Any]]] = {
    "rest_api": rest_api.run,
    "webhook": webhook.run,
    "function": function.run,
    "script": script.run,
    "database": database.run,
    "custom": custom.run,
}
