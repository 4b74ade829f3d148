"""What a tenant stores is counted with its rows, whatever adds, changes or deletes them."""

from collections.abc import AsyncIterator

import pytest

from app.services import Services
from tests.database import run_sql
from tests.matrix.seeds import delete_rows, insert_rows
from tests.platform.storage.counting import SIZES, count_anew, read_counted
from tests.platform.storage.triggers import list_counted
from tests.world import Client, World

_AGENT = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be brief."}
# Changes of the size of a row.
_GROW = {
    "conversation_entries": "content = content || 'more', data = '{\"a\": 1}'",
    "message_feedback": "comment = coalesce(comment, '') || 'more'",
    "chat_jobs": "reply = '{\"text\": \"Hello\"}', progress = '[1, 2]'",
    "tool_executions": "output = '[1, 2, 3]', error_message = 'it failed'",
    "workflow_executions": "stored_bytes = 5000, output = '[1]'",
    "data_rows": 'values = \'{"a": "longer than before"}\'',
    "documents": "chunk_count = 40",
    "agents": "system_prompt = 'Be verbose, please.', updated_at = now()",
    "record_drafts": 'body = \'{"a": "longer than before"}\'',
    "tools": "config = '{\"a\": 1}', updated_at = now()",
    "form_drafts": "data = '{\"a\": 1}'",
    "form_conversations": "data = '{\"a\": 1}'",
    "form_versions": "fields = '[1, 2, 3]'",
}


async def _set_ends(services: Services, tenant_id: str, moment: str) -> None:
    for table in (counted.table for counted in list_counted() if counted.from_end):
        sql = f"UPDATE {table} SET finished_at = {moment} WHERE tenant_id = $1"
        await run_sql(services, sql, tenant_id)


@pytest.fixture
async def tenant_id(world: World, services: Services) -> AsyncIterator[str]:
    """A tenant with a row in every table."""
    tenant_id = await world.tenant()
    await insert_rows(services, tenant_id)
    # No execution is added with an end, and the counters have rows of their own now.
    await _set_ends(services, tenant_id, "NULL")
    for sql in (
        "DELETE FROM storage_changes WHERE tenant_id = $1 AND bytes <= 1",
        "DELETE FROM storage_kinds WHERE tenant_id = $1",
        "DELETE FROM storage_usage WHERE tenant_id = $1",
    ):
        await run_sql(services, sql, tenant_id)
    await _set_ends(services, tenant_id, "now()")
    yield tenant_id
    await delete_rows(services, tenant_id)


async def test_rows_that_are_added_changed_and_deleted_are_counted(
    tenant_id: str, services: Services, subtests: pytest.Subtests
) -> None:
    counted = await read_counted(services, tenant_id)
    assert counted == await count_anew(services, tenant_id)
    assert set(counted) == {kind for kind, _ in SIZES.values()}
    assert set(_GROW) == {table.table for table in list_counted() if table.update_condition}
    for table, change in _GROW.items():
        with subtests.test(changed=table):
            await run_sql(services, f"UPDATE {table} SET {change} WHERE tenant_id = $1", tenant_id)
            after = await read_counted(services, tenant_id)
            assert after != counted
            assert after == await count_anew(services, tenant_id)
            counted = after
    for table in SIZES:
        with subtests.test(deleted=table):
            await run_sql(services, f"DELETE FROM {table} WHERE tenant_id = $1", tenant_id)
            assert await read_counted(services, tenant_id) == await count_anew(services, tenant_id)
    assert await read_counted(services, tenant_id) == {}


async def test_executions_count_from_their_end_and_not_while_they_are_retried(
    tenant_id: str, services: Services
) -> None:
    for moment in ("NULL", "now()", "NULL"):
        await _set_ends(services, tenant_id, moment)
        counted = await read_counted(services, tenant_id)
        assert ("executions" in counted) == (moment == "now()")
        assert counted == await count_anew(services, tenant_id)


async def test_what_is_deleted_with_its_owner_is_subtracted(
    developer: Client, services: Services
) -> None:
    """Foreign keys delete the conversations and versions of an agent."""
    agent_id = (await developer.post("/api/v1/agents", _AGENT)).json()["id"]
    path = f"/api/v1/agents/{agent_id}"
    assert (await developer.put(path, {"system_prompt": "Be long."})).status_code == 200
    counted = await read_counted(services, developer.tenant_id)
    assert counted == await count_anew(services, developer.tenant_id)
    assert counted["definitions"] > 0
    assert (await developer.delete(path)).status_code == 204
    counted = await read_counted(services, developer.tenant_id)
    assert counted == await count_anew(services, developer.tenant_id)
    assert "definitions" not in counted


async def test_what_a_deleted_tenant_stored_is_discarded(
    tenant_id: str, services: Services
) -> None:
    await delete_rows(services, tenant_id)
    assert await read_counted(services, tenant_id) == {}
    sql = "SELECT 1 FROM storage_changes WHERE tenant_id = $1"
    assert await run_sql(services, sql, tenant_id) == []
