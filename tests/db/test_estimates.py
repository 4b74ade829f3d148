"""Estimated totals of lists that belong to one thing of one tenant.

The planner takes the tenant and the thing for independent conditions; both together it estimates
far too low.
"""

from collections.abc import AsyncIterator

import pytest

from app.services import Services
from db.lists import BOUND
from db.session import ALL_TENANTS
from tests.world import Client, World

# An estimate is at least the bound: what is far too low must be below the least allowed one.
_ROWS = BOUND * 8 // 5
_ADD_TOOL = """
INSERT INTO tools (tenant_id, id, name, slug, description, category, tool_type, config,
                   auth_type)
VALUES ($1::text, 'tol_' || $1::text, 'Tool', 'tool', '', 'automation', 'function', '{}', 'none')
"""
_ADD_EXECUTIONS = """
INSERT INTO tool_executions (tenant_id, id, tool_id, work_id, status, input, correlation_id,
                             finished_at)
SELECT $1::text, 'exe_' || $1::text || number, 'tol_' || $1::text, '', 'completed', '{}', '', now()
FROM generate_series(1, $2::int) AS number
"""
_ADD_CREDENTIAL = """
INSERT INTO credentials (tenant_id, id, name, type, secrets, secret_keys, metadata)
VALUES ($1::text, 'crd_' || $1::text, 'Key', 'api_key', '', '{}', '{}')
"""
_ADD_AUDIT = """
INSERT INTO credential_audit (tenant_id, id, seq, credential_id, action, actor_type, success,
                              created_at, mac)
SELECT $1::text, 'aud_' || $1::text || number, number, 'crd_' || $1::text, 'used', 'user', true,
       now(), ''
FROM generate_series(1, $2::int) AS number
"""
_ADD_USERS = """
INSERT INTO users (tenant_id, id, email, first_name, last_name, role, password_hash)
SELECT $1::text, 'usr_' || $1::text || number, number || '@' || $1::text || '.example', '', '',
       'viewer', ''
FROM generate_series(1, $2::int) AS number
"""


async def _run(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await (await tx.raw()).execute(sql, *args)


@pytest.fixture
async def owners(world: World, services: Services) -> AsyncIterator[list[Client]]:
    """Users of several tenants, since the planner is right while there is only one."""
    owners = [await world.user("tenant_admin", await world.tenant()) for _ in range(2)]
    yield owners
    for owner in owners:
        await _run(services, "DELETE FROM tenants WHERE id = $1", owner.tenant_id)


async def test_executions_of_a_tool(owners: list[Client], services: Services) -> None:
    for owner in owners:
        await _run(services, _ADD_TOOL, owner.tenant_id)
        await _run(services, _ADD_EXECUTIONS, owner.tenant_id, _ROWS)
    await _run(services, "ANALYZE tool_executions")
    answer = await owners[0].get(f"/v1/tools/tol_{owners[0].tenant_id}/executions")
    pagination = answer.json()["pagination"]
    assert pagination["estimated"] is True
    assert 0.7 * _ROWS < pagination["total"] < 1.5 * _ROWS


async def test_audit_of_a_credential(owners: list[Client], services: Services) -> None:
    for owner in owners:
        await _run(services, _ADD_CREDENTIAL, owner.tenant_id)
        await _run(services, _ADD_AUDIT, owner.tenant_id, _ROWS)
    await _run(services, "ANALYZE credential_audit")
    answer = await owners[0].get(f"/v1/credentials/crd_{owners[0].tenant_id}/audit")
    pagination = answer.json()["pagination"]
    assert pagination["estimated"] is True
    assert 0.7 * _ROWS < pagination["total"] < 1.5 * _ROWS


async def test_users_of_a_tenant(owners: list[Client], services: Services) -> None:
    await _run(services, _ADD_USERS, owners[0].tenant_id, _ROWS)
    await _run(services, "ANALYZE users")
    body = (await owners[0].get("/users")).json()
    assert body["estimated"] is True
    assert 0.7 * _ROWS < body["total"] < 1.5 * _ROWS
