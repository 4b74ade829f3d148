"""Running tools: accepted, run once by a worker, told, remembered and counted."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app.areas import AREAS
from app.domain.tools import executions, queries
from app.kit.ids import new_id
from app.kit.work import WorkKind
from app.services import Services
from db import ledger, retention
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.tools.factories import Bench, bench_of
from tests.tools.site import Site, always, open_site
from tests.world import Client, World
from workers.main import WorkerProcess

ECHO = {"runtime": "python", "code": "def main(input):\n    return input\n"}
FAILING = {"runtime": "python", "code": "def main(input):\n    raise ValueError('no luck')\n"}
SLOW = {
    "runtime": "python",
    "code": "import time\ndef main(input):\n    time.sleep(30)\n",
    "timeout_ms": 300,
}
NO_AGENT = "agt_00000000000000000000000000"
NO_TOOL = "tool_00000000000000000000000000"
RECORD_KEYS = {
    "id",
    "tool_id",
    "agent_id",
    "status",
    "input",
    "output",
    "error",
    "execution_time_ms",
    "executed_at",
}


@pytest.fixture
async def bench(world: World) -> Bench:
    return await bench_of(world)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


async def _execute(bench: Bench, tool_id: str, **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    body = {"input": {}, **more}
    return await bench.client.post(f"/v1/tools/{tool_id}/execute", body, headers=headers)


async def _records(bench: Bench, tool_id: str, **params: Any) -> list[dict[str, Any]]:
    answer = await bench.client.get(f"/v1/tools/{tool_id}/executions", params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "pagination"}
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _record(bench: Bench, tool_id: str, execution_id: str) -> dict[str, Any]:
    answer = await bench.client.get(f"/v1/tools/{tool_id}/executions/{execution_id}")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    found: dict[str, Any] = answer.json()["data"]
    return found


async def _tool(bench: Bench, tool_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await bench.client.get(f"/v1/tools/{tool_id}")).json()["data"]
    return found


async def _sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def _value(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql, *args)


# What an answer says


async def test_a_run_that_succeeds_tells_its_output(bench: Bench, worker: WorkerProcess) -> None:
    tool_id = await bench.create("function", ECHO)
    answer = await _execute(bench, tool_id, input={"a": [1, None, "ä"]})
    assert answer.status_code == 200
    assert set(answer.json()) == {"data"}
    data = answer.json()["data"]
    keys = {"execution_id", "status", "output", "execution_time_ms", "executed_at"}
    assert set(data) == keys
    assert data["execution_id"].startswith("exe_")
    assert (data["status"], data["output"]) == ("completed", {"a": [1, None, "ä"]})
    assert data["execution_time_ms"] > 0
    assert data["executed_at"].endswith("Z")


async def test_a_run_that_gives_nothing_has_null_as_output(
    bench: Bench, worker: WorkerProcess
) -> None:
    code = "def main(input):\n    pass\n"
    tool_id = await bench.create("function", {"runtime": "python", "code": code})
    data = await bench.run(tool_id)
    assert (data["status"], data["output"]) == ("completed", None)


async def test_a_run_that_fails_is_a_normal_answer_with_an_error(
    bench: Bench, worker: WorkerProcess
) -> None:
    tool_id = await bench.create("function", FAILING)
    data = await bench.run(tool_id)
    assert set(data) == {"execution_id", "status", "error", "execution_time_ms", "executed_at"}
    assert data["status"] == "failed"
    assert data["error"] == {"code": "runtime_error", "message": "ValueError: no luck"}


async def test_a_run_that_takes_too_long_is_a_timeout(bench: Bench, worker: WorkerProcess) -> None:
    tool_id = await bench.create("function", SLOW)
    data = await bench.run(tool_id)
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert 250 <= data["execution_time_ms"] < 5000


async def test_an_input_may_be_left_out(bench: Bench, worker: WorkerProcess) -> None:
    tool_id = await bench.create("function", ECHO)
    answer = await bench.client.post(f"/v1/tools/{tool_id}/execute", {})
    assert answer.json()["data"]["output"] == {}


async def test_ten_runs_at_once_each_have_their_own_output(
    bench: Bench, worker: WorkerProcess
) -> None:
    tool_id = await bench.create("function", ECHO)
    found = await asyncio.gather(*(bench.output(tool_id, {"n": number}) for number in range(10)))
    assert [item["n"] for item in found] == list(range(10))
    assert (await _tool(bench, tool_id))["usage_count"] == 10


# What is refused


SCHEMA = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}, "to": {}},
    "required": ["to"],
}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, {"input"}),
        ({"to": 1, "numbers": 5}, {"input.numbers"}),
        ({"to": 1, "numbers": [1, "x", 2]}, {"input.numbers.1"}),
        ({"numbers": ["x"]}, {"input", "input.numbers.0"}),
    ],
)
async def test_an_input_against_its_schema_is_refused_by_field(
    bench: Bench, given: dict[str, Any], named: set[str]
) -> None:
    tool_id = await bench.create("function", ECHO, input_schema=SCHEMA)
    answer = await _execute(bench, tool_id, input=given)
    assert set(refused(answer, 422, "validation_error")["details"]) == named
    assert await _records(bench, tool_id) == []


async def test_an_input_that_conforms_is_run(bench: Bench, worker: WorkerProcess) -> None:
    tool_id = await bench.create("function", ECHO, input_schema=SCHEMA)
    given = {"to": None, "numbers": [1, 2.5], "more": True}
    assert await bench.output(tool_id, given) == given


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": "x"}, "input"),
        ({"agent_id": 5}, "agent_id"),
        ({"agent_id": "x" * 65}, "agent_id"),
    ],
)
async def test_a_wrong_field_is_named(bench: Bench, body: dict[str, Any], field: str) -> None:
    tool_id = await bench.create("function", ECHO)
    answer = await bench.client.post(f"/v1/tools/{tool_id}/execute", body)
    assert set(refused(answer, 422, "validation_error")["details"]) == {field}


async def test_an_input_is_not_nested_without_end(bench: Bench) -> None:
    tool_id = await bench.create("function", ECHO)
    deep: Any = {}
    for _ in range(80):
        deep = {"a": deep}
    answer = await _execute(bench, tool_id, input=deep)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"input"}


@pytest.mark.parametrize(
    ("tool_type", "given", "field"),
    [
        ("rest_api", {"endpoint": 5}, "input.endpoint"),
        ("rest_api", {"params": []}, "input.params"),
        ("rest_api", {"headers": {"a": 1}}, "input.headers"),
        ("database", {}, "input.query"),
        ("database", {"query": "select 1", "params": {}}, "input.params"),
    ],
)
async def test_an_input_of_the_wrong_shape_for_its_type_is_named(
    bench: Bench, tool_type: str, given: dict[str, Any], field: str
) -> None:
    config: dict[str, Any] = {"db_type": "sqlite", "database": "a.db"}
    if tool_type == "rest_api":
        endpoints = {"one": {"method": "GET", "path": "/"}}
        config = {"base_url": "https://example.com", "endpoints": endpoints}
    tool_id = await bench.create(tool_type, config)
    answer = await _execute(bench, tool_id, input=given)
    (named,) = refused(answer, 422, "validation_error")["details"]
    assert named.startswith(field)


async def test_a_disabled_tool_does_not_run(bench: Bench) -> None:
    tool_id = await bench.create("function", ECHO, is_enabled=False)
    refused(await _execute(bench, tool_id), 409, "tool_disabled")
    assert (await _tool(bench, tool_id))["usage_count"] == 0


async def test_an_unknown_tool_does_not_run(bench: Bench) -> None:
    refused(await _execute(bench, NO_TOOL), 404, "tool_not_found")


async def test_an_unknown_agent_runs_nothing(bench: Bench, world: World) -> None:
    tool_id = await bench.create("function", ECHO)
    for agent_id in (NO_AGENT, await (await bench_of(world)).agent()):
        refused(await _execute(bench, tool_id, agent_id=agent_id), 404, "agent_not_found")


async def test_a_tool_that_is_switched_off_for_an_agent_does_not_run_for_it(
    bench: Bench, worker: WorkerProcess
) -> None:
    tool_id, agent_id = await bench.create("function", ECHO), await bench.agent()
    body = {"tool_id": tool_id, "is_enabled": False}
    await bench.client.post(f"/v1/agents/{agent_id}/tools", body)
    refused(await _execute(bench, tool_id, agent_id=agent_id), 409, "tool_disabled")
    assert await bench.output(tool_id) == {}


async def test_super_admin_runs_any_tenants_tool(
    bench: Bench, super_admin: Client, worker: WorkerProcess
) -> None:
    tool_id = await bench.create("function", ECHO)
    answer = await super_admin.post(f"/v1/tools/{tool_id}/execute", {"input": {"a": 1}})
    assert answer.json()["data"]["output"] == {"a": 1}
    assert len(await _records(bench, tool_id)) == 1


async def test_a_run_costs_five_units(world: World) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 100})
    caller = await world.user("agent_developer", tenant)
    answer = await caller.post(f"/v1/tools/{NO_TOOL}/execute", {})
    assert answer.headers["x-ratelimit-remaining"] == "95"


# The same key


async def test_the_same_key_is_one_run(bench: Bench, site: Site, worker: WorkerProcess) -> None:
    tool_id = await bench.create("webhook", {"url": site.url})
    headers = {"idempotency-key": "once"}
    first = await _execute(bench, tool_id, input={"a": 1}, headers=headers)
    second = await _execute(bench, tool_id, input={"a": 1}, headers=headers)
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    assert len(site.seen) == 1
    other = await _execute(bench, tool_id, input={"a": 2}, headers=headers)
    refused(other, 422, "idempotency_mismatch")
    assert len(site.seen) == 1


async def test_five_requests_with_one_key_at_once_are_one_run(
    bench: Bench, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await bench.create("webhook", {"url": site.url})
    headers = {"idempotency-key": "once"}
    answers = await asyncio.gather(
        *(_execute(bench, tool_id, headers=dict(headers)) for _ in range(5))
    )
    assert len(site.seen) == 1
    done = [answer.json() for answer in answers if answer.status_code == 200]
    assert done
    assert all(answer == done[0] for answer in done)


# Records


async def test_a_record_holds_what_went_in_and_came_out(
    bench: Bench, worker: WorkerProcess
) -> None:
    tool_id, agent_id = await bench.create("function", ECHO), await bench.agent()
    data = await bench.run(tool_id, {"b": 1, "a": 2}, agent_id=agent_id)
    record = await _record(bench, tool_id, data["execution_id"])
    assert set(record) == RECORD_KEYS
    assert record == {
        "id": data["execution_id"],
        "tool_id": tool_id,
        "agent_id": agent_id,
        "status": "completed",
        "input": {"b": 1, "a": 2},
        "output": {"b": 1, "a": 2},
        "error": None,
        "execution_time_ms": data["execution_time_ms"],
        "executed_at": data["executed_at"],
    }
    assert await _records(bench, tool_id) == [record]


async def test_a_record_of_a_failure_holds_its_error(bench: Bench, worker: WorkerProcess) -> None:
    tool_id = await bench.create("function", FAILING)
    data = await bench.run(tool_id)
    record = await _record(bench, tool_id, data["execution_id"])
    assert (record["status"], record["output"], record["agent_id"]) == ("failed", None, None)
    assert record["error"] == data["error"]


async def test_a_record_is_found_under_its_own_tool_alone(
    bench: Bench, world: World, worker: WorkerProcess
) -> None:
    tool_id, other = [await bench.create("function", ECHO) for _ in range(2)]
    execution_id = (await bench.run(tool_id))["execution_id"]
    path = f"/v1/tools/{other}/executions/{execution_id}"
    refused(await bench.client.get(path), 404, "execution_not_found")
    path = f"/v1/tools/{tool_id}/executions"
    refused(await bench.client.get(f"{path}/exe_none"), 404, "execution_not_found")
    stranger = await world.user("tenant_admin")
    refused(await stranger.get(f"{path}/{execution_id}"), 404, "tool_not_found")
    viewer = await world.user("viewer", bench.client.tenant_id)
    assert (await viewer.get(f"{path}/{execution_id}")).status_code == 200


async def test_a_run_is_counted_when_it_ends(bench: Bench, worker: WorkerProcess) -> None:
    good, bad = await bench.create("function", ECHO), await bench.create("function", FAILING)
    before = await _tool(bench, good)
    for tool_id in (good, good, bad):
        await bench.run(tool_id)
    shown = [await _tool(bench, tool_id) for tool_id in (good, bad)]
    assert [item["usage_count"] for item in shown] == [2, 1]
    assert all(item["last_used_at"].endswith("Z") for item in shown)
    assert shown[0]["usage_stats"]["success_rate"] == 100.0
    assert shown[0]["usage_stats"]["total_executions"] == 2
    assert shown[1]["usage_stats"]["failed"] == 1
    assert shown[0]["updated_at"] == before["updated_at"]


async def _insert(
    services: Services, bench: Bench, tool_id: str, at: datetime, **fields: Any
) -> str:
    """A run that ended, at a time of the test's choosing."""
    row = {"status": "completed", "ms": 10, "agent_id": None, "finished": True, **fields}
    execution_id = new_id("exe")
    await _sql(
        services,
        "INSERT INTO tool_executions (tenant_id, id, tool_id, agent_id, work_id, status, input,"
        " output, correlation_id, execution_time_ms, executed_at, finished_at)"
        " VALUES ($1, $2, $3, $4, 'wrk_x', $5, '{}', '{}', 'cor_x', $6, $7, $8)",
        bench.client.tenant_id,
        execution_id,
        tool_id,
        row["agent_id"],
        row["status"],
        row["ms"],
        at,
        at if row["finished"] else None,
    )
    return execution_id


# Not long ago: what is old is deleted by workers, also by those of tests.
NOON = (datetime.now(UTC) - timedelta(days=3)).replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture
async def history(bench: Bench, services: Services) -> tuple[str, list[str]]:
    """A tool and four runs of it, an hour apart."""
    tool_id = await bench.create("function", ECHO)
    statuses = ["completed", "failed", "timeout", "completed"]
    ids = [
        await _insert(services, bench, tool_id, NOON + timedelta(hours=hour), status=status)
        for hour, status in enumerate(statuses)
    ]
    await _insert(services, bench, tool_id, NOON, status="running", finished=False)
    return tool_id, ids


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [3, 2, 1, 0]),
        ({"status": "completed"}, [3, 0]),
        ({"status": "failed"}, [1]),
        ({"status": "timeout"}, [2]),
        ({"after": "{day}T13:00:00Z"}, [3, 2]),
        ({"after": "{day}T12:59:59Z"}, [3, 2, 1]),
        ({"before": "{day}T13:00:00Z"}, [0]),
        ({"before": "{day}T14:30:00+01:00"}, [1, 0]),
        ({"after": "{day}T12:00:00", "before": "{day}T15:00:00"}, [2, 1]),
        ({"after": "{next_day}"}, []),
        ({"per_page": 1, "page": 2}, [2]),
        ({"status": "completed", "before": "{day}T14:00:00Z"}, [0]),
    ],
)
async def test_runs_are_listed_the_latest_first_and_filtered(
    bench: Bench, history: tuple[str, list[str]], params: dict[str, Any], expected: list[int]
) -> None:
    tool_id, ids = history
    days = {"day": f"{NOON:%Y-%m-%d}", "next_day": f"{NOON + timedelta(days=1):%Y-%m-%d}"}
    asked = {
        name: value.format(**days) if isinstance(value, str) else value
        for name, value in params.items()
    }
    found = [record["id"] for record in await _records(bench, tool_id, **asked)]
    assert found == [ids[index] for index in expected]


async def test_a_page_of_runs_tells_where_it_is(
    bench: Bench, history: tuple[str, list[str]]
) -> None:
    params = {"per_page": 3, "page": 2}
    answer = await bench.client.get(f"/v1/tools/{history[0]}/executions", params=params)
    expected = {"page": 2, "per_page": 3, "total": 4, "total_pages": 2}
    assert answer.json()["pagination"] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "running"),
        ("status", "x"),
        ("after", "yesterday"),
        ("before", "2026-13-01"),
        ("page", 0),
        ("per_page", 101),
    ],
)
async def test_a_wrong_parameter_of_the_list_is_named(
    bench: Bench, history: tuple[str, list[str]], name: str, value: Any
) -> None:
    answer = await bench.client.get(f"/v1/tools/{history[0]}/executions", params={name: value})
    assert name in refused(answer, 422, "validation_error")["details"]


async def test_a_run_that_has_not_ended_is_not_shown(bench: Bench, services: Services) -> None:
    tool_id = await bench.create("function", ECHO)
    running = await _insert(services, bench, tool_id, NOON, status="running", finished=False)
    path = f"/v1/tools/{tool_id}/executions/{running}"
    refused(await bench.client.get(path), 404, "execution_not_found")


async def test_runs_of_the_last_90_days_are_kept(bench: Bench, services: Services) -> None:
    tool_id, now = await bench.create("function", ECHO), datetime.now(UTC)
    kept = await _insert(services, bench, tool_id, now - timedelta(days=89, hours=23))
    await _insert(services, bench, tool_id, now - timedelta(days=90, hours=1))
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await retention.delete_expired(await tx.raw(), AREAS.retention)
    assert [record["id"] for record in await _records(bench, tool_id)] == [kept]


# Figures


async def _stats(bench: Bench, tool_id: str, **params: Any) -> dict[str, Any]:
    answer = await bench.client.get(f"/v1/tools/{tool_id}/stats", params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    found: dict[str, Any] = answer.json()["data"]
    return found


async def test_the_figures_of_an_unused_tool_are_zeros(bench: Bench) -> None:
    tool_id = await bench.create("function", ECHO)
    found = await _stats(bench, tool_id)
    days = found.pop("daily_breakdown")
    assert found == {
        "tool_id": tool_id,
        "period": "7d",
        "total_executions": 0,
        "successful": 0,
        "failed": 0,
        "success_rate": 0.0,
        "avg_execution_time_ms": 0.0,
        "p95_execution_time_ms": 0.0,
        "p99_execution_time_ms": 0.0,
        "top_agents": [],
    }
    assert len(days) == 8
    assert all((day["executions"], day["failures"]) == (0, 0) for day in days)


@pytest.mark.parametrize(
    ("period", "total"), [("24h", 1), ("7d", 2), ("30d", 3), ("90d", 4), (None, 2)]
)
async def test_figures_are_of_their_period(
    bench: Bench, services: Services, period: str | None, total: int
) -> None:
    tool_id, now = await bench.create("function", ECHO), datetime.now(UTC)
    for days in (1, 7, 30, 90):
        await _insert(services, bench, tool_id, now - timedelta(days=days, minutes=-5))
        await _insert(services, bench, tool_id, now - timedelta(days=days, minutes=5), ms=10**6)
    # Just outside of one period is inside of the next.
    inside = {"24h": 1, "7d": 3, "30d": 5, "90d": 7}[period or "7d"]
    found = await _stats(bench, tool_id, **({"period": period} if period else {}))
    assert found["period"] == (period or "7d")
    assert found["total_executions"] == inside == 2 * total - 1
    assert sum(day["executions"] for day in found["daily_breakdown"]) == inside


async def test_percentiles_are_those_of_postgres(bench: Bench, services: Services) -> None:
    tool_id, now = await bench.create("function", ECHO), datetime.now(UTC)
    times = [5, 17, 17, 80, 123, 250, 251, 900, 1800, 9999, 42]
    for ms in times:
        await _insert(services, bench, tool_id, now - timedelta(hours=1), ms=ms)
    found = await _stats(bench, tool_id)
    for name, share in (("p95", 0.95), ("p99", 0.99)):
        sql = "SELECT percentile_cont($2) WITHIN GROUP (ORDER BY ms) FROM unnest($1::int[]) ms"
        expected = await _value(services, sql, times, share)
        assert found[f"{name}_execution_time_ms"] == round(expected, 1)
    assert found["avg_execution_time_ms"] == round(sum(times) / len(times), 1)


async def test_success_is_told_in_percent(bench: Bench, services: Services) -> None:
    tool_id, now = await bench.create("function", ECHO), datetime.now(UTC)
    for status in ("completed", "completed", "failed", "timeout", "completed", "completed"):
        await _insert(services, bench, tool_id, now - timedelta(hours=1), status=status)
    await _insert(services, bench, tool_id, now, status="running", finished=False)
    found = await _stats(bench, tool_id)
    assert (found["total_executions"], found["successful"], found["failed"]) == (6, 4, 2)
    assert found["success_rate"] == 66.67
    shown = (await _tool(bench, tool_id))["usage_stats"]
    assert (shown["total_executions"], shown["success_rate"]) == (6, 66.67)


async def test_days_are_those_of_utc(bench: Bench, services: Services) -> None:
    tool_id = await bench.create("function", ECHO)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for at, status in [
        (today - timedelta(seconds=1), "completed"),
        (today - timedelta(days=1), "failed"),
        (today - timedelta(days=1, seconds=1), "timeout"),
        (today, "completed"),
    ]:
        await _insert(services, bench, tool_id, at, status=status)
    days = (await _stats(bench, tool_id))["daily_breakdown"]
    dates = [(today - timedelta(days=back)).strftime("%Y-%m-%d") for back in range(7, -1, -1)]
    assert [day["date"] for day in days] == dates
    counted = [(day["executions"], day["failures"]) for day in days[-3:]]
    assert counted == [(1, 1), (2, 1), (1, 0)]


async def test_the_agents_who_used_a_tool_most_are_told(bench: Bench, services: Services) -> None:
    tool_id, now = await bench.create("function", ECHO), datetime.now(UTC)
    often, seldom = await bench.agent(), await bench.agent()
    await bench.client.put(f"/api/v1/agents/{often}", {"name": "Often"})
    for agent_id, times in ((often, 3), (seldom, 1), (None, 5)):
        for _ in range(times):
            await _insert(services, bench, tool_id, now - timedelta(hours=1), agent_id=agent_id)
    assert (await _stats(bench, tool_id))["top_agents"] == [
        {"agent_id": often, "agent_name": "Often", "executions": 3},
        {"agent_id": seldom, "agent_name": "Agent", "executions": 1},
    ]


async def test_an_agent_that_is_gone_still_counts(bench: Bench, services: Services) -> None:
    tool_id, agent_id = await bench.create("function", ECHO), await bench.agent()
    await _insert(services, bench, tool_id, datetime.now(UTC), agent_id=agent_id)
    await bench.client.delete(f"/api/v1/agents/{agent_id}")
    top = (await _stats(bench, tool_id))["top_agents"]
    assert top == [{"agent_id": agent_id, "agent_name": "", "executions": 1}]


@pytest.mark.parametrize("period", ["1h", "all_time", "", "7D"])
async def test_an_unknown_period_is_refused(bench: Bench, period: str) -> None:
    tool_id = await bench.create("function", ECHO)
    answer = await bench.client.get(f"/v1/tools/{tool_id}/stats", params={"period": period})
    assert "period" in refused(answer, 422, "validation_error")["details"]


# Outputs


async def test_an_output_that_conforms_is_given(bench: Bench, worker: WorkerProcess) -> None:
    schema = {"required": ["a"]}
    tool_id = await bench.create("function", ECHO, output_schema=schema)
    assert await bench.output(tool_id, {"a": 1}) == {"a": 1}


async def test_an_output_against_its_schema_fails_and_is_kept(
    bench: Bench, worker: WorkerProcess
) -> None:
    schema = {"properties": {"a": {"type": "string"}}}
    tool_id = await bench.create("function", ECHO, output_schema=schema)
    failure = await bench.failure(tool_id, {"a": 1})
    assert (failure["status"], failure["code"]) == ("failed", "invalid_output")
    assert failure["message"].startswith("output.a: ")
    assert failure["output"] == {"a": 1}


async def test_an_output_that_is_nested_without_end_is_invalid(
    bench: Bench, worker: WorkerProcess
) -> None:
    code = "def main(input):\n    x = []\n    for _ in range(80):\n        x = [x]\n    return x\n"
    tool_id = await bench.create("function", {"runtime": "python", "code": code})
    assert await bench.code(tool_id) == "invalid_output"


async def test_the_nested_body_of_a_refusal_is_left_out(
    bench: Bench, site: Site, worker: WorkerProcess
) -> None:
    headers = {"content-type": "application/json"}
    site.answer = always("[" * 700 + "]" * 700, status=500, headers=headers)
    auth = {"auth_type": "bearer", "auth_config": {"token": "planted-token"}}
    tool_id = await bench.create("webhook", {"url": site.url}, **auth)
    failure = await bench.failure(tool_id)
    assert (failure["code"], failure["output"]) == ("http_error", None)
    assert len(site.seen) == 1


async def test_a_nul_in_an_output_does_not_fail_a_run(bench: Bench, worker: WorkerProcess) -> None:
    code = "def main(input):\n    return {'a\\0': 'b\\0c'}\n"
    tool_id = await bench.create("function", {"runtime": "python", "code": code})
    assert await bench.output(tool_id) == {"a": "bc"}


# Without a worker, and with one that dies


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs wait on a queue that no worker of this test process takes."""
    kind = WorkKind("tools.run", "speech", retry_delays=(0, 0), awaited=True)
    monkeypatch.setitem(AREAS.work_kinds, kind.name, kind)
    monkeypatch.setattr(executions, "RUN_TOOL", kind)


async def test_a_run_that_no_worker_takes_ends_as_a_timeout(
    bench: Bench, services: Services, unheard: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "QUEUE_SECONDS", 0.3)
    tool_id = await bench.create("function", {**ECHO, "timeout_ms": 50})
    data = await bench.run(tool_id)
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert "no worker" in data["error"]["message"]
    assert [record["id"] for record in await _records(bench, tool_id, status="timeout")] == [
        data["execution_id"]
    ]
    state = "SELECT state FROM work WHERE ref_id = $1"
    assert await _value(services, state, data["execution_id"]) == "cancelled"


async def test_a_worker_that_comes_too_late_runs_nothing(
    bench: Bench,
    services: Services,
    site: Site,
    worker: WorkerProcess,
    unheard: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executions, "QUEUE_SECONDS", 0.1)
    tool_id = await bench.create("webhook", {"url": site.url, "timeout_ms": 50})
    data = await bench.run(tool_id)
    work = "SELECT id FROM work WHERE ref_id = $1"
    await worker.runner.run(await _value(services, work, data["execution_id"]))
    assert site.seen == []
    assert (await _tool(bench, tool_id))["usage_count"] == 1


async def _started(services: Services, tool_id: str) -> tuple[str, str]:
    """The run that somebody waits for, and its work, once both are there."""
    async with asyncio.timeout(10):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                sql = "SELECT id, work_id FROM tool_executions WHERE tool_id = $1"
                row = await (await tx.raw()).fetchrow(sql, tool_id)
            if row is not None:
                return row["id"], row["work_id"]
            await asyncio.sleep(0.01)


async def _die_in_the_middle(
    bench: Bench, services: Services, execution_id: str, work_id: str
) -> None:
    """As a worker leaves it that took the run, began it and was killed."""
    async with services.db.tx(ALL_TENANTS) as tx:
        assert await ledger.claim(await tx.raw(), work_id, "lea_dead", 0.0) is not None
        assert await queries.start_execution(tx, bench.client.tenant_id, execution_id) is not None


async def _after_a_death(
    bench: Bench, services: Services, worker: WorkerProcess, tool_id: str, given: dict[str, Any]
) -> dict[str, Any]:
    waiting = asyncio.create_task(bench.run(tool_id, given))
    execution_id, work_id = await _started(services, tool_id)
    await _die_in_the_middle(bench, services, execution_id, work_id)
    await worker.runner.run(work_id)
    found = await waiting
    assert found["execution_id"] == execution_id
    return found


async def test_a_function_whose_worker_died_is_run_again(
    bench: Bench, services: Services, worker: WorkerProcess, unheard: None
) -> None:
    tool_id = await bench.create("function", ECHO)
    data = await _after_a_death(bench, services, worker, tool_id, {"a": 1})
    assert (data["status"], data["output"]) == ("completed", {"a": 1})
    assert (await _tool(bench, tool_id))["usage_count"] == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_call_with_effects_whose_worker_died_is_not_repeated(
    bench: Bench, services: Services, worker: WorkerProcess, site: Site, unheard: None, method: str
) -> None:
    tool_id = await bench.create("webhook", {"url": site.url, "method": method})
    data = await _after_a_death(bench, services, worker, tool_id, {})
    assert data["status"] == "failed"
    assert "not repeated because it may have had effects" in data["error"]["message"]
    assert site.seen == []


async def test_a_call_that_only_reads_is_repeated_when_its_worker_died(
    bench: Bench, services: Services, worker: WorkerProcess, site: Site, unheard: None
) -> None:
    tool_id = await bench.create("webhook", {"url": site.url, "method": "GET"})
    data = await _after_a_death(bench, services, worker, tool_id, {})
    assert data["status"] == "completed"
    assert len(site.seen) == 1


async def test_a_run_whose_every_worker_died_ends_as_failed(
    bench: Bench, services: Services, worker: WorkerProcess, unheard: None
) -> None:
    tool_id = await bench.create("function", ECHO)
    waiting = asyncio.create_task(bench.run(tool_id))
    execution_id, work_id = await _started(services, tool_id)
    for _ in range(3):
        await _die_in_the_middle(bench, services, execution_id, work_id)
    await worker.runner.run(work_id)
    data = await waiting
    assert (data["status"], data["error"]["code"]) == ("failed", "runtime_error")


async def test_a_worker_that_lost_its_run_to_another_changes_nothing(
    bench: Bench, services: Services, worker: WorkerProcess, site: Site, unheard: None
) -> None:
    tool_id = await bench.create("webhook", {"url": site.url})
    waiting = asyncio.create_task(bench.run(tool_id))
    execution_id, work_id = await _started(services, tool_id)
    runs = [asyncio.create_task(worker.runner.run(work_id)) for _ in range(5)]
    await asyncio.gather(*runs)
    assert (await waiting)["status"] == "completed"
    assert len(site.seen) == 1
    count = "SELECT count(*) FROM tool_executions WHERE id = $1"
    assert await _value(services, count, execution_id) == 1


async def test_who_waits_for_a_tool_that_is_deleted_is_told(
    bench: Bench, services: Services, worker: WorkerProcess, unheard: None
) -> None:
    tool_id = await bench.create("function", ECHO)
    waiting = asyncio.create_task(_execute(bench, tool_id))
    _, work_id = await _started(services, tool_id)
    assert (await bench.client.delete(f"/v1/tools/{tool_id}")).status_code == 204
    await worker.runner.run(work_id)
    refused(await waiting, 404, "tool_not_found")


async def test_the_ledger_holds_ids_and_no_input(
    bench: Bench, services: Services, unheard: None
) -> None:
    tool_id = await bench.create("function", ECHO)
    waiting = asyncio.create_task(bench.run(tool_id, {"pin": "planted-pin"}))
    execution_id, work_id = await _started(services, tool_id)
    text = await _value(services, "SELECT w::text FROM work w WHERE id = $1", work_id)
    assert execution_id in text
    assert "planted-pin" not in text
    await bench.client.delete(f"/v1/tools/{tool_id}")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


# Who sees what was said


@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_whoever_may_not_run_tools_sees_that_they_ran_and_no_more(
    bench: Bench, world: World, worker: WorkerProcess, role: str
) -> None:
    tool_id = await bench.create("function", FAILING)
    await bench.run(tool_id, {"said": "something private"})
    other = await world.user(role, bench.client.tenant_id)
    answer = await other.get(f"/v1/tools/{tool_id}/executions")
    (seen,) = answer.json()["data"]
    assert (seen["input"], seen["output"]) == ({}, None)
    assert seen["error"] == {"code": "runtime_error", "message": ""}


async def test_what_an_agent_said_is_for_those_who_may_read_conversations(
    bench: Bench, world: World, services: Services, worker: WorkerProcess
) -> None:
    tool_id = await bench.create("function", ECHO)
    await bench.run(tool_id, {"said": "something private"})
    await _sql(services, "UPDATE tool_executions SET call_id = id WHERE tool_id = $1", tool_id)
    for role, input_ in (("tenant_admin", {"said": "something private"}), ("agent_user", {})):
        other = await world.user(role, bench.client.tenant_id)
        answer = await other.get(f"/v1/tools/{tool_id}/executions")
        assert [one["input"] for one in answer.json()["data"]] == [input_]
