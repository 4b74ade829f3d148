"""Database tools: validates the statement, and runs it on the database's own driver."""

import asyncio
from typing import Any

import msgspec

from app.domain.agents.tools.configs import DatabaseConfig, DatabaseInput
from app.domain.agents.tools.errors import StatementRejected, ToolFailed
from app.net import databases
from app.net.egress import EgressError

from . import mysql, postgresql, sql, sqlite
from .protocol import (
    DatabaseLogin,
    ExecutorEnvironment,
    Task,
    egress_failure,
    require_database_login,
)


async def run(task: Task[DatabaseConfig], environment: ExecutorEnvironment) -> dict[str, Any]:
    config = task.config
    try:
        arguments = msgspec.convert(task.input, DatabaseInput)
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", f"the input cannot be used: {error}") from error
    try:
        statement = await asyncio.to_thread(
            sql.validate_statement, arguments.query, config.db_type, list(config.allowed_operations)
        )
    except StatementRejected as error:
        raise ToolFailed("query_rejected", str(error)) from error
    if config.db_type == "sqlite":
        return await sqlite.run(task, environment, statement, arguments.params)
    login = _merge_login(config, require_database_login(task.auth) or DatabaseLogin("", ""))
    try:
        if config.db_type == "postgresql":
            return await postgresql.run(task, environment, login, statement, arguments.params)
        return await mysql.run(task, environment, login, statement, arguments.params)
    except EgressError as error:
        raise egress_failure(error) from error


def _merge_login(config: DatabaseConfig, login: DatabaseLogin) -> databases.Login:
    """Returns the config's server with the login's user. Raises ToolFailed when the credential
    names another server than the config.
    """
    host = config.host or login.host or ""
    port = config.port or login.port
    if login.host is not None:
        default = databases.PORTS.get(login.engine or config.db_type)
        is_same_port = (port or default) == (login.port or default)
        is_same_server = host.lower() == login.host.lower() and is_same_port
        if not is_same_server or login.engine != config.db_type:
            raise ToolFailed("auth_failed", "the credential belongs to another server")
    if not host:
        raise ToolFailed("connection_error", "the tool names no host")
    mode = login.ssl_mode or "prefer"
    if config.ssl and mode in {"disable", "allow", "prefer"}:
        mode = "require"
    return databases.Login(
        engine=config.db_type,  # type: ignore[arg-type]
        host=host,
        port=port,
        database=config.database or login.database or "",
        username=login.username or "postgres",
        password=login.password,
        ssl_mode=mode,  # type: ignore[arg-type]
    )
