import asyncio
from typing import Any

import msgspec

from app.domain.tools.configs import DatabaseConfig, DatabaseInput
from app.domain.tools.executors import mysql, postgresql, sql, sqlite
from app.domain.tools.executors.protocol import (
    Login,
    Surroundings,
    Task,
    ToolFailed,
    of_the_way,
    over_sql,
)
from app.domain.tools.executors.sql import Rejected
from app.kit import databases
from app.kit.egress import EgressError


async def run(task: Task[DatabaseConfig], around: Surroundings) -> dict[str, Any]:
    config = task.config
    try:
        given = msgspec.convert(task.input, DatabaseInput)
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", f"the input cannot be used: {error}") from error
    try:
        statement = await asyncio.to_thread(
            sql.judged, given.query, config.db_type, list(config.allowed_operations)
        )
    except Rejected as error:
        raise ToolFailed("query_rejected", str(error)) from error
    if config.db_type == "sqlite":
        return await sqlite.run(task, around, statement, given.params)
    login = _login(config, over_sql(task.auth))
    try:
        if config.db_type == "postgresql":
            return await postgresql.run(task, around, login, statement, given.params)
        return await mysql.run(task, around, login, statement, given.params)
    except EgressError as error:
        raise of_the_way(error) from error


def _login(config: DatabaseConfig, given: Login | None) -> databases.Login:
    """Where to, and as whom. A credential that names its server is for no other."""
    given = given or Login("", "")
    host = config.host or given.host or ""
    port = config.port or given.port
    if given.host is not None:
        known = databases.PORTS.get(given.engine or config.db_type)
        same = host.lower() == given.host.lower() and (port or known) == (given.port or known)
        if not same or given.engine != config.db_type:
            raise ToolFailed("auth_failed", "the credential belongs to another server")
    if not host:
        raise ToolFailed("connection_error", "the tool names no host")
    mode = given.ssl_mode or "prefer"
    if config.ssl and mode in {"disable", "allow", "prefer"}:
        mode = "require"
    return databases.Login(
        engine=config.db_type,  # type: ignore[arg-type]
        host=host,
        port=port,
        database=config.database or given.database or "",
        username=given.username or "postgres",
        password=given.password,
        ssl_mode=mode,  # type: ignore[arg-type]
    )
