"""GET /api/v1/usage: sums of a period, in all and by day, agent and model."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.agents.usage import service as usage
from app.domain.agents.usage.service import ModelCall
from app.kit import clock
from app.services import Services
from tests.agents.usage.rows import add_count, add_usage, get_usage, store_requests, sum_days
from tests.assertions import refused
from tests.database import run_sql
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.world import Client, World

NOON = datetime(2026, 3, 15, 12, 30, tzinfo=UTC)
PERIODS = ("24h", "7d", "30d", "90d", "all_time")
NOTHING = {
    "requests": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "total_tokens": 0,
    "cost_usd": 0.0,
    "conversations": 0,
    "tool_executions": 0,
    "workflow_executions": 0,
}


async def test_a_new_tenant_has_used_nothing(world: World) -> None:
    client = await world.user("tenant_admin")
    report = await get_usage(client)
    assert report["period"] == "30d"
    assert report["totals"] == NOTHING
    assert (report["by_agent"], report["by_model"]) == ([], [])
    assert len(report["by_day"]) == 30
    assert all(day == {**NOTHING, "date": day["date"]} for day in report["by_day"])


async def test_a_turn_counts_for_its_day_agent_and_model(talk: Talker, services: Services) -> None:
    talk.script(Reply(usage=(20, 5)))
    await talk.say("Hi")
    report = await get_usage(talk.client)
    sums = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "cost_usd": 0.0}
    sums["conversations"] = 1
    for part in (report["totals"], report["by_day"][-1], report["by_agent"][0]):
        assert part.items() >= sums.items()
    assert report["by_agent"][0]["agent_id"] == talk.agent_id
    assert report["by_agent"][0]["agent_name"]
    assert [model["total_tokens"] for model in report["by_model"]] == [25]
    await usage.roll_up(services)
    after = await get_usage(talk.client)
    for name in ("by_agent", "by_model"):
        assert after[name] == report[name]


async def test_a_call_without_an_agent_counts_for_its_tenant_and_model(
    world: World, services: Services
) -> None:
    clients = [await world.user("tenant_admin") for _ in range(2)]
    for number, client in enumerate(clients, 1):
        call = ModelCall("embedding", "acme/embedder", 10 * number, 0, 0.5 * number)
        await usage.add_call(services.db, client.tenant_id, None, call)
        await usage.add_call(services.db, client.tenant_id, f"agt_{client.tenant_id}", call)
    for is_rolled in (False, True):
        if is_rolled:
            await usage.roll_up(services)
        for number, client in enumerate(clients, 1):
            for period in PERIODS:
                report = await get_usage(client, period=period)
                sums = {"prompt_tokens": 20 * number, "cost_usd": 1.0 * number}
                for part in (report["totals"], *report["by_model"]):
                    assert part.items() >= sums.items()
                (agent,) = report["by_agent"]
                assert agent["agent_id"] == f"agt_{client.tenant_id}"
                assert agent["prompt_tokens"] == 10 * number


async def test_periods_have_whole_hours_or_days_in_utc(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    client = await world.user("tenant_admin")
    # Each first moment of a period, and the last one before it.
    starts = {
        "24h": datetime(2026, 3, 14, 13, tzinfo=UTC),
        "7d": datetime(2026, 3, 9, tzinfo=UTC),
        "30d": datetime(2026, 2, 14, tzinfo=UTC),
        "90d": datetime(2025, 12, 16, tzinfo=UTC),
        "all_time": datetime(2024, 1, 1, tzinfo=UTC),
    }
    for start in starts.values():
        for at in (start, start - timedelta(milliseconds=1)):
            await add_usage(services, client.tenant_id, at=at, tokens=(1, 0))
            await add_count(services, client.tenant_id, at=at)
    expected = {"24h": 1, "7d": 3, "30d": 5, "90d": 7, "all_time": 10}
    for is_rolled in (False, True):
        for period in PERIODS:
            with subtests.test(period=period, is_rolled=is_rolled), clock.frozen(NOON):
                report = await get_usage(client, period=period)
                totals = report["totals"]
                assert totals["total_tokens"] == expected[period]
                assert totals["tool_executions"] == expected[period]
                assert sum_days(report) == totals
                since = starts[period].isoformat().replace("+00:00", "Z")
                assert report["since"] == (None if period == "all_time" else since)
        await usage.roll_up(services)


async def test_days_without_usage_are_listed_except_in_all_time(
    world: World, services: Services
) -> None:
    client = await world.user("tenant_admin")
    await add_usage(services, client.tenant_id, at=NOON - timedelta(days=3))
    with clock.frozen(NOON):
        reports = {period: await get_usage(client, period=period) for period in PERIODS}
    counts = {period: len(report["by_day"]) for period, report in reports.items()}
    assert counts == {"24h": 2, "7d": 7, "30d": 30, "90d": 90, "all_time": 1}
    dates = [day["date"] for day in reports["90d"]["by_day"]]
    first = NOON.date() - timedelta(days=89)
    assert dates == [str(first + timedelta(days=number)) for number in range(90)]
    assert reports["all_time"]["by_day"][0]["date"] == "2026-03-12"


async def test_costs_of_days_are_rounded_so_that_they_add_up(
    world: World, services: Services
) -> None:
    client = await world.user("tenant_admin")
    for days in range(20):
        at = NOON - timedelta(days=days)
        await add_usage(services, client.tenant_id, at=at, cost="0.000000333")
    with clock.frozen(NOON):
        report = await get_usage(client)
    assert report["totals"]["cost_usd"] == 0.000007
    assert sum_days(report)["cost_usd"] == 0.000007
    assert all(0 <= day["cost_usd"] <= 0.000001 for day in report["by_day"])


async def test_agents_and_models_are_ordered_by_cost_and_then_by_tokens(
    world: World, services: Services
) -> None:
    client = await world.user("tenant_admin")
    tenant_id = client.tenant_id
    used: list[dict[str, Any]] = [
        {"agent_id": "agt_cheap", "model": "acme/small", "tokens": (500, 0), "cost": "0"},
        {"agent_id": "agt_dear", "model": "acme/large", "tokens": (1, 0), "cost": "2.5"},
        {"agent_id": "agt_few", "model": "acme/tiny", "tokens": (5, 0), "cost": "0"},
        {"agent_id": "agt_dear", "model": "acme/tiny", "tokens": (1, 1), "cost": "0"},
    ]
    for values in used:
        await add_usage(services, tenant_id, **values)
    await add_count(services, tenant_id, agent_id="agt_few")
    report = await get_usage(client)
    by_agent = {item["agent_id"]: item["total_tokens"] for item in report["by_agent"]}
    assert list(by_agent.items()) == [("agt_dear", 3), ("agt_cheap", 500), ("agt_few", 5)]
    by_model = {item["model"]: item["total_tokens"] for item in report["by_model"]}
    assert list(by_model.items()) == [("acme/large", 1), ("acme/small", 500), ("acme/tiny", 7)]
    # They were deleted.
    assert {item["agent_name"] for item in report["by_agent"]} == {None}
    assert [item["tool_executions"] for item in report["by_agent"]] == [0, 0, 1]


async def test_only_the_first_fifty_agents_are_listed_and_all_are_summed(
    world: World, services: Services
) -> None:
    client = await world.user("tenant_admin")
    for number in range(55):
        await add_usage(
            services, client.tenant_id, agent_id=f"agt_many_{number}", tokens=(number + 1, 0)
        )
    report = await get_usage(client)
    assert [item["total_tokens"] for item in report["by_agent"]] == list(range(55, 5, -1))
    assert report["totals"]["total_tokens"] == 55 * 56 // 2


async def test_filters_hide_what_is_not_counted_by_agent_or_model(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    client = await world.user("tenant_admin")
    for agent_id in ("agt_a", "agt_b"):
        for model in ("acme/one", "acme/two"):
            await add_usage(services, client.tenant_id, agent_id=agent_id, model=model)
        await add_count(services, client.tenant_id, agent_id=agent_id)
    await add_count(services, client.tenant_id)
    await add_count(services, client.tenant_id, "workflow_executions")
    cases: list[tuple[dict[str, str], tuple[int, int | None, int | None]]] = [
        ({}, (44, 3, 1)),
        ({"agent_id": "agt_a"}, (22, 1, None)),
        ({"model": "acme/one"}, (22, None, None)),
        ({"agent_id": "agt_b", "model": "acme/two"}, (11, None, None)),
        ({"agent_id": "agt_unknown"}, (0, 0, None)),
    ]
    for _ in range(2):
        for params, expected in cases:
            with subtests.test(params=params):
                totals = (await get_usage(client, **params))["totals"]
                names = ("total_tokens", "tool_executions", "workflow_executions")
                assert tuple(totals[name] for name in names) == expected
                assert (totals["requests"] is None) == bool(params)
        await usage.roll_up(services)


async def test_an_unknown_period_is_refused(developer: Client) -> None:
    for period in ("1h", "", "365d", "ALL_TIME"):
        answer = await developer.get("/api/v1/usage", params={"period": period})
        assert list(refused(answer, 422, "validation_error")["details"]) == ["period"]


async def test_only_roles_with_the_permission_read_usage(world: World) -> None:
    tenant_id = await world.tenant()
    for role, status in (("agent_developer", 200), ("agent_user", 403), ("viewer", 403)):
        client = await world.user(role, tenant_id)
        assert (await client.get("/api/v1/usage")).status_code == status


# Tenants


async def test_a_tenant_sees_only_its_own_usage(world: World, services: Services) -> None:
    own, other = await world.user("tenant_admin"), await world.user("tenant_admin")
    await add_usage(services, other.tenant_id, agent_id="agt_other")
    await add_count(services, other.tenant_id)
    await other.get("/api/v1/usage")
    await store_requests(services)
    for _ in range(2):
        for params in ({}, {"agent_id": "agt_other"}, {"model": "acme/one"}):
            report = await get_usage(own, **params)
            assert report["totals"]["total_tokens"] == 0
            assert not report["totals"]["tool_executions"]
            assert (report["by_agent"], report["by_model"]) == ([], [])
        await usage.roll_up(services)


async def test_super_admin_sees_all_tenants_or_the_selected_one(
    world: World, services: Services, super_admin: Client
) -> None:
    tenants = [await world.tenant("pro"), await world.tenant("team")]
    model = f"acme/{tenants[0]}"
    for tenant_id in tenants:
        await add_usage(services, tenant_id, model=model, tokens=(7, 0))
    for _ in range(2):
        # By a model of its own: other tests use models as well.
        assert (await get_usage(super_admin, model=model))["totals"]["total_tokens"] == 14
        report = await get_usage(super_admin)
        assert report["limits"]["plan"] == "enterprise"
        header = {"x-tenant-id": tenants[0]}
        answer = await super_admin.get("/api/v1/usage", headers=header)
        assert answer.json()["totals"]["total_tokens"] == 7
        assert answer.json()["limits"]["plan"] == "pro"
        await usage.roll_up(services)


# Concurrency


async def test_sums_are_exact_during_parallel_writes_and_roll_ups(
    world: World, services: Services
) -> None:
    client = await world.user("tenant_admin")
    tenant_id, is_done = client.tenant_id, asyncio.Event()
    seen: list[dict[str, Any]] = []

    async def write(number: int) -> None:
        for _ in range(4):
            await add_usage(
                services, tenant_id, agent_id=f"agt_parallel_{number % 3}", cost="0.001"
            )
            await add_count(services, tenant_id, agent_id=f"agt_parallel_{number % 3}")

    async def roll_up() -> None:
        while not is_done.is_set():
            await usage.roll_up(services)

    async def watch() -> None:
        while not is_done.is_set():
            seen.append(await get_usage(client))

    watchers = [asyncio.create_task(task) for task in (roll_up(), roll_up(), watch())]
    await asyncio.gather(*(write(number) for number in range(50)))
    is_done.set()
    await asyncio.gather(*watchers)
    seen.append(await get_usage(client))
    for report in seen:
        assert sum_days(report) == report["totals"]
        tokens = sum(item["total_tokens"] for item in report["by_agent"])
        assert tokens == report["totals"]["total_tokens"]
    # No report has less than the one before it.
    for name in ("total_tokens", "tool_executions"):
        sums = [report["totals"][name] for report in seen]
        assert sums == sorted(sums)
    totals = seen[-1]["totals"]
    assert (totals["total_tokens"], totals["tool_executions"]) == (2200, 200)
    assert totals["cost_usd"] == 0.2


async def test_hours_and_days_have_the_same_sums(world: World, services: Services) -> None:
    client = await world.user("tenant_admin")
    for hours in range(0, 60, 7):
        at = NOON - timedelta(hours=hours)
        await add_usage(services, client.tenant_id, cost="0.5", conversations=1, at=at)
    await asyncio.gather(*(usage.roll_up(services) for _ in range(4)))
    await usage.roll_up(services)
    sums = "sum(prompt_tokens), sum(completion_tokens), sum(cost_usd), sum(conversations)"
    hours_and_days = [
        await run_sql(
            services, f"SELECT {sums} FROM {table} WHERE tenant_id = $1", client.tenant_id
        )
        for table in ("usage_hours", "usage_days")
    ]
    assert hours_and_days[0] == hours_and_days[1]
