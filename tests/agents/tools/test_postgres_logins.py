"""The logins and servers of tools that query Postgres."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.agents.tools.database_tools import build_config, create_postgres_tool
from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.tenant_postgres import DATABASE, PASSWORD, USER, TenantPostgres
from tests.ports import free_port
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


async def test_a_wrong_login_is_a_failed_auth(
    tools: ToolExecutor, postgres: TenantPostgres, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str]] = [
        {"username": USER, "password": "wrong"},
        {"username": USER, "password": ""},
        {"username": "nobody", "password": PASSWORD},
    ]
    for auth in cases:
        with subtests.test(auth=auth):
            tool = await tools.create(
                "database", build_config(postgres), auth_type="basic", auth_config=auth
            )
            assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "auth_failed"


async def test_http_auth_is_no_login_for_a_database(
    tools: ToolExecutor, postgres: TenantPostgres, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("bearer", {"token": PASSWORD}),
        ("api_key", {"api_key_value": PASSWORD}),
        ("custom", {"headers": {"X-Password": PASSWORD}}),
    ]
    for auth_type, auth in cases:
        with subtests.test(auth_type=auth_type, auth=auth):
            tool = await tools.create(
                "database", build_config(postgres), auth_type=auth_type, auth_config=auth
            )
            error = await tools.get_failure(tool, {"query": "SELECT 1"})
            assert error["code"] == "auth_failed"
            assert "basic" in error["message"]


async def test_an_unknown_database_is_named(tools: ToolExecutor, postgres: TenantPostgres) -> None:
    tool = await create_postgres_tool(tools, postgres, database="nowhere")
    error = await tools.get_failure(tool, {"query": "SELECT 1"})
    assert error["code"] == "runtime_error"
    assert "nowhere" in error["message"]


async def test_a_closed_port_is_a_connection_error(
    tools: ToolExecutor, postgres: TenantPostgres
) -> None:
    tool = await create_postgres_tool(tools, postgres, port=free_port())
    assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "connection_error"


async def test_an_unknown_host_is_a_connection_error(
    tools: ToolExecutor,
    postgres: TenantPostgres,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(host: str, port: int) -> list[str]:
        raise OSError("unknown")

    monkeypatch.setattr(worker.services.egress.guard, "_resolve", fail)
    tool = await create_postgres_tool(tools, postgres, host="db.example")
    assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "connection_error"


@asynccontextmanager
async def _run_server(
    handler: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """Runs a server and yields its port."""
    async with await asyncio.start_server(handler, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_server_of_another_protocol_is_a_connection_error(
    tools: ToolExecutor, postgres: TenantPostgres
) -> None:
    async def send_ssh_banner(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    async with _run_server(send_ssh_banner) as port:
        tool = await create_postgres_tool(tools, postgres, port=port, timeout_ms=10_000)
        error = await tools.get_failure(tool, {"query": "SELECT 1"})
        assert error["code"] == "connection_error", error


async def test_a_server_that_never_answers_is_a_timeout(
    tools: ToolExecutor, postgres: TenantPostgres
) -> None:
    async def send_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with _run_server(send_nothing) as port:
        tool = await create_postgres_tool(tools, postgres, port=port, timeout_ms=300)
        assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "timeout"


async def test_ssl_to_a_server_without_ssl_is_a_connection_error(
    tools: ToolExecutor, postgres: TenantPostgres
) -> None:
    tool = await create_postgres_tool(tools, postgres, ssl=True)
    assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "connection_error"


def _credential_secrets(postgres: TenantPostgres, **fields: Any) -> dict[str, Any]:
    base = {"host": "127.0.0.1", "port": postgres.port, "database": DATABASE}
    return {**base, "username": USER, "password": PASSWORD, **fields}


async def _create_tool_with_credential(
    tool_client: ToolClient,
    config: dict[str, Any],
    secrets: dict[str, Any],
    type_: str = "database",
) -> str:
    credential = await tool_client.create_credential(type_, secrets)
    auth = {"credential_id": credential}
    tool = await tool_client.create("database", config, auth_type="basic", auth_config=auth)
    await tool_client.grant_access(credential, tool)
    return tool


async def test_a_credential_logs_in_at_its_own_server(
    tool_client: ToolClient, postgres: TenantPostgres
) -> None:
    tool = await _create_tool_with_credential(
        tool_client, build_config(postgres), _credential_secrets(postgres)
    )
    arguments = {"query": "SELECT current_user::text"}
    assert (await tool_client.get_output(tool, arguments))["rows"] == [[USER]]


async def test_host_and_port_may_come_from_the_credential(
    tool_client: ToolClient, postgres: TenantPostgres
) -> None:
    config = {"db_type": "postgresql", "database": DATABASE}
    tool = await _create_tool_with_credential(tool_client, config, _credential_secrets(postgres))
    assert (await tool_client.get_output(tool, {"query": "SELECT 1"}))["rows"] == [[1]]


async def test_a_basic_auth_credential_logs_in_at_any_server(
    tool_client: ToolClient, postgres: TenantPostgres
) -> None:
    secrets = {"username": USER, "password": PASSWORD}
    tool = await _create_tool_with_credential(
        tool_client, build_config(postgres), secrets, "basic_auth"
    )
    assert (await tool_client.get_output(tool, {"query": "SELECT 1"}))["rows"] == [[1]]


async def test_a_credential_is_not_sent_to_another_server(
    tool_client: ToolClient, postgres: TenantPostgres, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {"host": "db.example"},
        {"host": "localhost"},
        {"port": 5},
        {"port": None},
        {"engine": "mysql"},
    ]
    for change in cases:
        with subtests.test(change=change):
            secrets = {
                name: value
                for name, value in _credential_secrets(postgres, **change).items()
                if value is not None
            }
            tool = await _create_tool_with_credential(tool_client, build_config(postgres), secrets)
            assert await tool_client.get_error_code(tool, {"query": "SELECT 1"}) == "auth_failed"


async def test_a_credential_without_an_access_rule_is_not_used(
    tool_client: ToolClient, postgres: TenantPostgres
) -> None:
    auth = {
        "credential_id": await tool_client.create_credential(
            "database", _credential_secrets(postgres)
        )
    }
    tool = await tool_client.create(
        "database", build_config(postgres), auth_type="basic", auth_config=auth
    )
    assert await tool_client.get_error_code(tool, {"query": "SELECT 1"}) == "auth_failed"
