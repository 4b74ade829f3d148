"""GET /api/v1/usage/series: usage by hour, day or month, in groups."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.agents.usage import service as usage
from app.kit import clock
from app.services import Services
from tests.agents.usage.rows import add_usage, store_requests
from tests.agents.usage.test_report import NOON
from tests.assertions import refused
from tests.conversations.embed.sites import create_site
from tests.database import run_sql
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.world import Client, World

PATH = "/api/v1/usage/series"
_SET_CALLER = "UPDATE usage SET caller_id = $2 WHERE tenant_id = $1 AND caller_id IS NULL"


async def _get(client: Client, **params: str) -> dict[str, Any]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    series: dict[str, Any] = answer.json()
    return series


def _tokens(series: dict[str, Any]) -> dict[str | None, list[int]]:
    return {group["id"]: group["values"]["total_tokens"] for group in series["groups"]}


async def test_a_tenant_without_usage_has_one_group_of_zeros(world: World) -> None:
    series = await _get(await world.user("tenant_admin"))
    (group,) = series["groups"]
    assert (series["interval"], len(series["buckets"])) == ("day", 30)
    assert group["values"]["turns"] == [0] * 30
    assert series["other"] is None
    assert series["totals"]["cost_usd"] == 0


async def test_buckets_are_aligned_and_filled_with_zeros(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    client = await world.user("tenant_admin")
    for days in (0, 2, 40):
        at = NOON - timedelta(days=days)
        await add_usage(services, client.tenant_id, tokens=(10 + days, 0), at=at, cost="0.5")
    cases: list[tuple[dict[str, str], int, dict[int, int], float]] = [
        ({"period": "24h", "interval": "hour"}, 24, {23: 10}, 0.5),
        ({"period": "7d"}, 7, {4: 12, 6: 10}, 1.0),
        ({"period": "90d", "interval": "month"}, 4, {2: 50, 3: 22}, 1.5),
        ({"from": "2026-03-13", "to": "2026-03-15"}, 48, {12: 12}, 0.5),
        ({"from": "2026-03-13", "to": "2026-03-15", "interval": "day"}, 2, {0: 12}, 0.5),
    ]
    for is_rolled in (False, True):
        for params, count, values, cost in cases:
            with subtests.test(params=params, is_rolled=is_rolled), clock.frozen(NOON):
                series = await _get(client, **params)
                assert len(series["buckets"]) == count
                (group,) = series["groups"]
                expected = [values.get(place, 0) for place in range(count)]
                assert group["values"]["total_tokens"] == expected
                assert series["totals"]["total_tokens"] == sum(expected)
                assert series["totals"]["cost_usd"] == cost
        await usage.roll_up(services)


async def test_the_first_groups_are_listed_and_the_others_are_added_up(
    world: World, services: Services
) -> None:
    client = await world.user("tenant_admin")
    for number in range(1, 8):
        await add_usage(
            services,
            client.tenant_id,
            model=f"acme/{number}",
            tokens=(number, 0),
            cost=f"0.{number}",
        )
    for _ in range(2):
        series = await _get(client, group_by="model", period="24h", interval="day", top="2")
        assert [group["id"] for group in series["groups"]] == ["acme/7", "acme/6"]
        assert series["other"]["totals"]["total_tokens"] == 15
        assert series["totals"]["total_tokens"] == 28
        assert series["totals"]["cost_usd"] == 2.8
        assert series["totals"]["requests"] is None
        await usage.roll_up(services)


async def test_turns_of_users_and_keys_are_told_apart(talk: Talker, services: Services) -> None:
    client, world = talk.client, talk.world
    talk.script(Reply(usage=(20, 5)), Reply(usage=(3, 1)))
    await talk.say("Hi")
    site = await create_site(talk)
    await site.say()
    await store_requests(services)
    key_id = site.key["id"]
    admin = await world.user("tenant_admin", client.tenant_id)
    for _ in range(2):
        by_user = await _get(admin, group_by="user", period="7d")
        users = {group["id"]: group for group in by_user["groups"]}
        assert users[client.user_id]["totals"]["total_tokens"] == 25
        assert users[client.user_id]["name"] == "Test User"
        assert users[client.user_id]["totals"]["requests"] >= 1
        assert users[None]["totals"]["total_tokens"] == 4
        by_key = await _get(admin, group_by="key", period="7d")
        keys = {group["id"]: group for group in by_key["groups"]}
        assert keys[key_id]["totals"]["total_tokens"] == 4
        assert keys[key_id]["totals"]["requests"] == 1
        assert keys[key_id]["name"]
        by_source = await _get(admin, group_by="source", period="7d")
        sources = {group["id"]: group["totals"]["total_tokens"] for group in by_source["groups"]}
        assert sources == {"console": 25, "embed": 4}
        assert by_source["totals"]["requests"] is None
        await usage.roll_up(services)


async def test_a_deleted_agent_or_key_keeps_its_name_and_a_deleted_user_does_not(
    talk: Talker, services: Services
) -> None:
    client, world = talk.client, talk.world
    talk.script(Reply(), Reply())
    await talk.say("Hi")
    site = await create_site(talk)
    await site.say()
    await store_requests(services)
    await usage.roll_up(services)
    admin = await world.user("tenant_admin", client.tenant_id)
    for table, column, value in (
        ("embed_keys", "agent_id", talk.agent_id),
        ("agents", "id", talk.agent_id),
        ("users", "id", client.user_id),
    ):
        await run_sql(services, f"DELETE FROM {table} WHERE {column} = $1", value)
    for group_by, has_name in (("agent", True), ("key", True), ("user", False)):
        series = await _get(admin, group_by=group_by)
        deleted = [group for group in series["groups"] if group["is_deleted"]]
        assert len(deleted) == 1
        assert (deleted[0]["name"] is not None) == has_name


async def test_requests_are_counted_in_all_and_by_caller(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    colleague = await world.user("agent_user", admin.tenant_id)
    for client in (admin, colleague, colleague):
        await client.get("/auth/me")
    await store_requests(services)
    by_user = await _get(admin, group_by="user", measure="requests", period="24h")
    counts = [(group["id"], group["totals"]["requests"]) for group in by_user["groups"]]
    assert counts == [(colleague.user_id, 2), (admin.user_id, 1)]
    assert (await _get(admin, period="24h"))["totals"]["requests"] == 3


async def test_series_of_other_tenants_are_not_shown(world: World, services: Services) -> None:
    mine, theirs = await world.user("tenant_admin"), await world.user("tenant_admin")
    await add_usage(services, theirs.tenant_id)
    await run_sql(services, _SET_CALLER, theirs.tenant_id, theirs.user_id)
    for is_rolled in (False, True):
        if is_rolled:
            await usage.roll_up(services)
        for group_by in ("none", "agent", "model", "user", "key", "source"):
            series = await _get(mine, group_by=group_by)
            assert series["totals"]["total_tokens"] == 0
        agent_id = f"agt_{theirs.tenant_id}"
        assert (await _get(mine, agent_id=agent_id))["totals"]["total_tokens"] == 0


async def test_super_admin_sees_all_tenants_or_the_selected_one(
    world: World, services: Services, super_admin: Client
) -> None:
    tenant_id = await world.tenant()
    await add_usage(services, tenant_id, tokens=(7, 0), model="acme/rare")
    for params in ({}, {"group_by": "model"}, {"group_by": "source"}):
        answer = await super_admin.get(PATH, params=params, headers={"x-tenant-id": tenant_id})
        assert answer.json()["totals"]["total_tokens"] == 7
    assert (await _get(super_admin, model="acme/rare"))["totals"]["total_tokens"] == 7


async def test_periods_that_cannot_be_shown_are_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    client = await world.user("tenant_admin")
    cases: list[tuple[dict[str, str], str]] = [
        ({"period": "7d", "from": "2026-03-01"}, "period"),
        ({"from": "2026-03-10", "to": "2026-03-01"}, "from"),
        ({"from": "2026-03-10", "to": "2027-03-01"}, "to"),
        ({"from": "2026-01-01", "interval": "hour"}, "from"),
        ({"from": "2020-01-01", "interval": "day"}, "interval"),
        ({"group_by": "key", "model": "acme/one"}, "model"),
        ({"group_by": "agent", "measure": "requests"}, "measure"),
        ({"from": "yesterday"}, "from"),
        ({"top": "21"}, "top"),
        ({"group_by": "password"}, "group_by"),
    ]
    for params, field in cases:
        with subtests.test(params=params), clock.frozen(NOON):
            answer = await client.get(PATH, params=params)
            assert refused(answer, 422, "validation_error")["details"][field]


async def test_the_longest_period_has_at_most_750_buckets(world: World) -> None:
    client = await world.user("tenant_admin")
    series = await _get(client, **{"from": "2000-01-01"})
    assert series["interval"] == "month"
    assert len(series["buckets"]) <= 750


async def test_callers_without_the_permission_are_refused(world: World) -> None:
    client = await world.user("agent_user")
    for path in (PATH, "/api/v1/usage/limits"):
        refused(await client.get(path), 403, "forbidden")


# Limits


async def test_limits_show_budgets_of_embed_keys_and_rows_of_tables(
    talk: Talker, services: Services
) -> None:
    site = await create_site(talk)
    admin = await talk.world.user("tenant_admin", talk.client.tenant_id)
    sql = "UPDATE embed_keys SET max_messages_per_day = 3 WHERE agent_id = $1"
    await run_sql(services, sql, talk.agent_id)
    talk.script(Reply())
    await site.say()
    limits = (await admin.get("/api/v1/usage/limits")).json()
    (budget,) = limits["embed_keys"]
    assert budget["messages"] == {"limit": 3, "used": 1, "remaining": 2}
    assert budget["tokens"]["limit"] is None
    assert limits["data_rows"]["used"] == 0
    minute = limits["visitors"]["embed"]["minute"]
    assert minute["remaining"] < minute["limit"]
    assert limits["visitors"]["forms"]["minute"]["remaining"] == minute["limit"]
    other = await talk.world.user("tenant_admin")
    assert (await other.get("/api/v1/usage/limits")).json()["embed_keys"] == []


async def test_a_budget_begins_anew_at_midnight_in_utc(world: World) -> None:
    client = await world.user("tenant_admin")
    with clock.frozen(NOON):
        limits = (await client.get("/api/v1/usage/limits")).json()
    midnight = datetime(2026, 3, 16, tzinfo=UTC)
    assert limits["budgets_reset"] == midnight.isoformat().replace("+00:00", "Z")
