"""How connections are opened: settings of the server, and connections that are made lazily."""

from collections.abc import Generator
from typing import Any, Final, cast

import asyncpg
from sqlalchemy.exc import DisconnectionError


class LazyConnect:
    """Calls `asyncpg.connect` only when it is awaited. `Tx` may drop it before that."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def __await__(self) -> Generator[Any, None, asyncpg.Connection]:
        return cast("Generator[Any, None, asyncpg.Connection]", self._connect().__await__())

    async def _connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(**self._options)


def refuse_closed(dbapi_connection: Any, _record: object, _proxy: object) -> None:
    """Makes the pool replace a closed connection, as there are after a restart of Postgres."""
    if dbapi_connection.driver_connection.is_closed():
        raise DisconnectionError


# Limits the wait for locks and the life of idle transactions. The page cost of SSDs makes the
# planner prefer index scans. JIT compilation would take longer than our statements.
SERVER_SETTINGS: Final = {
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "120s",
    "random_page_cost": "1.1",
    "jit": "off",
}
