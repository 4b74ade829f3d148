"""Creates tools that query the tenant's Postgres."""

from typing import Any

from tests.agents.tools.factories import ToolCaller
from tests.agents.tools.tenant_postgres import DATABASE, PASSWORD, USER, TenantPostgres


def build_config(postgres: TenantPostgres, **fields: Any) -> dict[str, Any]:
    base = {"db_type": "postgresql", "host": "127.0.0.1", "database": DATABASE}
    return {**base, "port": postgres.port, **fields}


async def create_postgres_tool(tools: ToolCaller, postgres: TenantPostgres, **config: Any) -> str:
    auth = {"username": USER, "password": PASSWORD}
    full_config = build_config(postgres, **config)
    return await tools.create("database", full_config, auth_type="basic", auth_config=auth)
