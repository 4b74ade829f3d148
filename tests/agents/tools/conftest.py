"""Fixtures that several modules of this folder share. A module may define its own `tools`."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.agents.tools.agent_tool_client import AgentToolClient
from tests.agents.tools.database_tools import create_postgres_tool
from tests.agents.tools.execution_requests import ECHO
from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolCaller, ToolClient, create_tool_client
from tests.agents.tools.site import Site, open_site
from tests.agents.tools.tenant_postgres import TenantPostgres, create_tables, start_postgres
from tests.agents.tools.token_server import TokenServer
from tests.agents.tools.tool_requests import WEBHOOK_TOOL, create_tool
from tests.world import Client, World
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def tool_client(world: World, worker: WorkerProcess) -> ToolClient:
    return await create_tool_client(world)


@pytest.fixture(scope="module")
def tools(tool_client: ToolClient) -> ToolCaller:
    return tool_client


@pytest.fixture(scope="session")
async def executor(world: World, worker: WorkerProcess) -> ToolExecutor:
    """The executors of a worker that has run a tool: it starts its sandbox before."""
    client = await create_tool_client(world)
    assert await client.get_output(await client.create("function", ECHO), {"a": 1}) == {"a": 1}
    return ToolExecutor(worker.services)


@pytest.fixture(scope="session")
async def session_site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


@pytest.fixture
def site(session_site: Site) -> Site:
    session_site.reset()
    return session_site


@pytest.fixture(scope="session")
async def postgres() -> AsyncIterator[TenantPostgres]:
    async with start_postgres() as postgres:
        yield postgres


@pytest.fixture(scope="session")
async def owner(postgres: TenantPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the tenant's user, with tables in its database."""
    connection = await postgres.connect()
    await create_tables(connection)
    yield connection
    await connection.close()


@pytest.fixture(scope="module")
async def reader(tools: ToolCaller, postgres: TenantPostgres, owner: asyncpg.Connection) -> str:
    """A tool that may only read from Postgres."""
    return await create_postgres_tool(tools, postgres)


@pytest.fixture(scope="module")
async def writer(tools: ToolCaller, postgres: TenantPostgres, owner: asyncpg.Connection) -> str:
    """A tool that may change data and tables in Postgres."""
    operations = ["select", "insert", "update", "delete", "create", "drop"]
    return await create_postgres_tool(tools, postgres, allowed_operations=operations)


@pytest.fixture
async def agent_tools(world: World) -> AgentToolClient:
    """A client of a new tenant with an agent, without a worker."""
    client = AgentToolClient((await create_tool_client(world)).client)
    client.agent_id = await client.create_agent()
    return client


@pytest.fixture
async def webhook_id(developer: Client) -> str:
    tool_id: str = (await create_tool(developer, **WEBHOOK_TOOL))["id"]
    return tool_id


@pytest.fixture
async def token_server() -> AsyncIterator[TokenServer]:
    """A server of its own for each test, since tokens are cached by their address."""
    server = TokenServer()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def role_without_credentials(super_admin: Client) -> AsyncIterator[str]:
    """A role that may write agents and tools but no credentials, while the test runs."""
    path = "/roles/viewer/permissions"
    before = (await super_admin.get(path)).json()["permissions"]
    permissions = {*before, "agents:write", "tools:write"}
    answer = await super_admin.put(path, {"permissions": sorted(permissions)})
    assert answer.status_code == 200, answer.text
    yield "viewer"
    answer = await super_admin.put(path, {"permissions": before})
    assert answer.status_code == 200, answer.text
