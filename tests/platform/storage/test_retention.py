"""History is deleted after the days of the tenant's plan; test events after a week."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.platform.storage.schemas import RetentionDays
from app.security.plans import PLANS
from app.services import Services
from db.retention import RetentionRule, delete_expired
from db.session import ALL_TENANTS
from tests.database import fetch_rows
from tests.matrix.seeds import delete_rows, insert_rows
from tests.world import World

# The tables of each kind of history, and the column with the time of a row.
_TABLES = {
    "payloads_days": [("incoming_payloads", "created_at"), ("deliveries", "created_at")],
    "executions_days": [("tool_executions", "executed_at"), ("workflow_executions", "finished_at")],
    "conversations_days": [
        ("message_feedback", "message_at"),
        ("conversation_entries", "created_at"),
    ],
    # Last, because deliveries are deleted with their events.
    "events_days": [("event_log", "created_at")],
}
_OF_AGENT = """
UPDATE {} SET agent_id = (SELECT id FROM agents a WHERE a.tenant_id = $1 LIMIT 1)
WHERE tenant_id = $1
"""
_OWN_ENTRIES, _OWN_FEEDBACK = map(_OF_AGENT.format, ("conversation_entries", "message_feedback"))
_RULES: list[RetentionRule] = list(AREAS.retention)


async def _apply(services: Services, table: str) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        await delete_expired(raw, [rule for rule in _RULES if rule.table == table])


@pytest.fixture
async def seed(world: World, services: Services) -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Returns a function that creates a tenant with a row in every table."""
    tenant_ids = []

    async def seed(plan: str, limits: dict[str, Any] | None = None) -> str:
        tenant_id = await world.tenant(plan, limits)
        tenant_ids.append(tenant_id)
        await insert_rows(services, tenant_id)
        return tenant_id

    yield seed
    for tenant_id in tenant_ids:
        await delete_rows(services, tenant_id)


async def _exists(services: Services, table: str, tenant_id: str) -> bool:
    sql = f"SELECT 1 FROM {table} WHERE tenant_id = $1"
    return bool(await fetch_rows(services, sql, tenant_id))


async def test_each_plan_keeps_history_for_its_days(
    seed: Callable[..., Awaitable[str]], services: Services, subtests: pytest.Subtests
) -> None:
    for plan, limits in [
        ("free", {}),
        ("pro", {}),
        ("team", {}),
        ("enterprise", {}),
        ("enterprise", {"own": 12}),
    ]:
        with subtests.test(plan=plan, limits=limits):
            own = dict.fromkeys(_TABLES, limits["own"]) if limits else {}
            tenant_id = await seed(plan, own)
            # The rows have any numbers; these are what the rules ask for.
            for sql in (
                "UPDATE event_log SET test = false WHERE tenant_id = $1",
                "UPDATE agents SET retention_days = 3650 WHERE tenant_id = $1",
                _OWN_ENTRIES,
                _OWN_FEEDBACK,
            ):
                await fetch_rows(services, sql, tenant_id)
            for limit, tables in _TABLES.items():
                days = own.get(limit) or getattr(PLANS[plan], limit)
                for table, column in tables:
                    with subtests.test(table=table):
                        for age, is_kept in ((days - 1, True), (days + 1, False)):
                            sql = f"UPDATE {table} SET {column} = now() - $2 * interval '1 day'"
                            await fetch_rows(
                                services, f"{sql} WHERE tenant_id = $1", tenant_id, age
                            )
                            await _apply(services, table)
                            assert await _exists(services, table, tenant_id) == is_kept


async def test_test_events_are_deleted_after_a_week(world: World, services: Services) -> None:
    tenant_id = await world.tenant("enterprise")
    add = """
    INSERT INTO event_log (tenant_id, id, type, correlation_id, test, data, created_at)
    SELECT $1, $2 || number, 'system.test', 'c', test, '{}', now() - age * interval '1 day'
    FROM (VALUES (1, true, 6), (2, true, 8), (3, false, 8)) AS rows(number, test, age)
    """
    await fetch_rows(services, add, tenant_id, tenant_id)
    await _apply(services, "event_log")
    rows = await fetch_rows(services, "SELECT id FROM event_log WHERE tenant_id = $1", tenant_id)
    assert {row["id"].removeprefix(tenant_id) for row in rows} == {"1", "3"}


async def test_an_agent_may_keep_conversations_for_less_than_the_plan(
    seed: Callable[..., Awaitable[str]], services: Services
) -> None:
    tenant_id = await seed("free")
    age = "now() - interval '6 days' WHERE tenant_id = $1"
    for sql in (
        "UPDATE agents SET retention_days = 5 WHERE tenant_id = $1",
        f"UPDATE conversation_entries SET created_at = {age}",
        f"UPDATE message_feedback SET message_at = {age}",
        _OWN_ENTRIES,
        _OWN_FEEDBACK,
    ):
        await fetch_rows(services, sql, tenant_id)
    for table in ("message_feedback", "conversation_entries"):
        await _apply(services, table)
    assert not await _exists(services, "conversation_entries", tenant_id)


def test_the_report_has_the_days_of_the_plans() -> None:
    assert RetentionDays.example == {
        "events": PLANS["pro"].events_days,
        "test_events": 7,
        "payloads": PLANS["pro"].payloads_days,
        "executions": PLANS["pro"].executions_days,
        "conversations": PLANS["pro"].conversations_days,
    }
