"""Every read as a viewer and as an agent_user of the same tenant: which columns they see.

A column that is not named here is not shown to them, so that a new one is hidden until somebody
decides otherwise.
"""

from collections.abc import AsyncIterator
from itertools import product as cartesian_product

import pytest

from tests.database import run_sql
from tests.matrix import seeds
from tests.matrix.routes import Route, list_routes
from tests.matrix.seeds import MARKER, VALID_VALUES, Rows, list_values
from tests.world import Client, World

# Texts that the rows do not have in these places, because they would not be valid there.
_SET_NODE = f"""
UPDATE workflow_versions
SET definition = jsonb_set(definition::jsonb, '{{nodes,0,config}}',
                           '{{"output": "workflow_versions__config-{MARKER}-0"}}')
WHERE tenant_id = $1
"""
_SET_ADDRESS = f"""
UPDATE forms SET settings = '{{"notifications": {{"email": "forms__notified-{MARKER}-0"}}}}'
WHERE tenant_id = $1
"""
_USER = {
    *("agents.name", "agents.description", "agents.status"),
    *("forms.name", "forms.description", "forms.slug"),
    *("tools.name", "tools.description", "tools.slug", "tools.category", "tools.tool_type"),
    *("tools.auth_type", "tools.input_schema", "tools.output_schema"),
    *("tool_executions.status", "tool_executions.error_code"),
    # Their own and shared ones, and the changes of what they may read.
    *("saved_views.name", "saved_views.kind", "saved_views.filters"),
    *("history_entries.name", "history_entries.action"),
    *("workflows.name", "workflows.description", "workflow_nodes.type"),
}
_VIEWER = _USER | {
    *("data_tables.name", "data_tables.description"),
    *("data_imports.filename", "data_imports.error"),
    *("data_import_errors.column_name", "data_import_errors.message"),
}


@pytest.fixture(scope="module")
async def rows(product: World) -> AsyncIterator[Rows]:
    tenant_id = await product.tenant()
    rows = await seeds.insert_rows(product.services, tenant_id)
    for statement in (*VALID_VALUES, _SET_NODE, _SET_ADDRESS):
        await run_sql(product.services, statement, tenant_id)
    yield rows
    await seeds.delete_rows(product.services, tenant_id)


async def _read(route: Route, reader: Client, rows: Rows) -> str:
    """Returns the first answer that the route gives for ids of the tenant, or no text."""
    choices = [list_values(name, rows) for name in route.parameters]
    for combination in cartesian_product(*choices):
        values = dict(zip(route.parameters, combination, strict=True))
        answer = await route.call(reader, values)
        if answer.status_code == 200:
            return answer.text
        if answer.status_code == 403:
            break
    return ""


def _is_identifier(column: str) -> bool:
    return column.endswith((".id", "_id", "_by"))


async def _find_columns(product: World, reader: Client, rows: Rows) -> set[str]:
    columns: set[str] = set()
    for route in list_routes(product.app):
        if route.method == "GET" and not route.public:
            columns |= seeds.find_columns(await _read(route, reader, rows))
    return {column for column in columns if not _is_identifier(column)}


@pytest.mark.parametrize(("role", "expected"), [("agent_user", _USER), ("viewer", _VIEWER)])
async def test_a_role_sees_these_columns_and_no_others(
    product: World, rows: Rows, role: str, expected: set[str]
) -> None:
    reader = await product.user(role, rows["tenants"]["id"])
    assert await _find_columns(product, reader, rows) == expected


async def test_a_developer_sees_what_is_hidden_from_them(product: World, rows: Rows) -> None:
    """So that the other test would notice it."""
    reader = await product.user("agent_developer", rows["tenants"]["id"])
    assert await _find_columns(product, reader, rows) >= {
        *("agents.system_prompt", "agents.primary_model", "agent_versions.system_prompt"),
        *("documents.name", "sub_agents.delegation_prompt", "embed_keys.name"),
        *("tools.config", "agent_tools.config_override", "workflow_versions.config"),
        *("form_submissions.data", "form_submissions.ip_address", "forms.notified"),
    }
