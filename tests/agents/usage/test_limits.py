"""The limits in the usage report: those of the plan, and what the rate limiter says remains."""

from typing import Any

import msgspec
import pytest

from app.domain.agents.usage.headroom import LimiterState, build_limits
from app.domain.area import ExecutionLoad
from app.domain.platform.storage.schemas import RetentionDays, StorageLimit, StoredBytes
from app.main import create_app
from app.security.plans import PLANS
from app.services import Services
from tests.agents.usage.rows import get_usage
from tests.platform.files.api import MEGABYTE, upload
from tests.ports import free_port
from tests.stores import Stores
from tests.world import Client, World

_WINDOWS = ("minute", "hour", "day")


async def _get_limits(super_admin: Client, tenant_id: str) -> dict[str, Any]:
    """Reads the limits of a tenant without a request that it is charged for."""
    answer = await super_admin.get("/api/v1/usage", headers={"x-tenant-id": tenant_id})
    assert answer.status_code == 200, answer.text
    limits: dict[str, Any] = answer.json()["limits"]
    return limits


async def test_limits_show_what_the_headers_of_the_same_answer_show(world: World) -> None:
    client = await world.user("tenant_admin", await world.tenant("free"))
    await client.get("/auth/me")
    answer = await client.get("/api/v1/usage")
    minute = answer.json()["limits"]["minute"]
    assert minute["limit"] == int(answer.headers["x-ratelimit-limit"]) == 60
    assert minute["remaining"] == int(answer.headers["x-ratelimit-remaining"]) == 58
    assert minute["reset"] == int(answer.headers["x-ratelimit-reset"])
    for _ in range(60):
        await client.get("/auth/me")
    answer = await client.get("/api/v1/usage")
    minute = answer.json()["limits"]["minute"]
    assert minute["limit"] == int(answer.headers["x-ratelimit-limit"]) == 120
    assert minute["remaining"] == int(answer.headers["x-ratelimit-remaining"]) == 57


async def test_reading_the_limits_of_a_tenant_charges_it_nothing(
    world: World, services: Services, super_admin: Client
) -> None:
    client = await world.user("agent_user", await world.tenant("pro"))
    for _ in range(4):
        await client.get("/auth/me")
    key = f"parley:limit:{client.tenant_id}"
    before = await services.redis.hgetall(key)
    for _ in range(2):
        limits = await _get_limits(super_admin, client.tenant_id)
        assert limits["plan"] == "pro"
        used = [limits[name]["limit"] - limits[name]["remaining"] for name in _WINDOWS]
        assert used == [4, 4, 4]
    assert await services.redis.hgetall(key) == before


async def test_entries_that_left_their_window_are_not_counted(
    world: World, services: Services, super_admin: Client
) -> None:
    tenant_id = await world.tenant("pro")
    now = int((await services.redis.time())[0])
    key = f"parley:limit:{tenant_id}"
    state: dict[Any, Any] = {
        "minute": 200 + 5,
        "hour": 200 + 7,
        "day": 200 + 9,
        "burst": 0,
        "last": now - 5,
    }
    await services.redis.hset(key, mapping=state)
    for name, seconds, recent in (("minute", 60, 5), ("hour", 3600, 7), ("day", 86400, 9)):
        entries = [f"{now - seconds - 300 + number}:1" for number in range(200)]
        await services.redis.rpush(f"{key}:{name}", *entries, f"{now - 5}:{recent}")
    limits = await _get_limits(super_admin, tenant_id)
    used = [limits[name]["limit"] - limits[name]["remaining"] for name in _WINDOWS]
    assert used == [5, 7, 9]
    resets = [limits[name]["reset"] - now for name in _WINDOWS]
    assert resets == [55, 3595, 86395]


async def test_an_idle_tenant_has_all_of_its_limits(world: World, super_admin: Client) -> None:
    limits = await _get_limits(super_admin, await world.tenant("team"))
    assert {name: limits[name]["remaining"] for name in _WINDOWS} == {
        "minute": 600,
        "hour": 30_000,
        "day": 300_000,
    }
    assert limits["workflow_executions"] == {
        "per_minute": {"limit": 60, "remaining": 60},
        "concurrent": {"limit": 10, "running": 0, "remaining": 10},
    }


async def test_an_enterprise_tenant_has_its_own_limits(world: World, super_admin: Client) -> None:
    own = {"requests_per_hour": 5000, "concurrent_executions": 7}
    limits = await _get_limits(super_admin, await world.tenant(limits=own))
    assert limits["plan"] == "enterprise"
    assert (limits["minute"]["limit"], limits["hour"]["limit"]) == (1200, 5000)
    assert limits["day"] == {"limit": None, "remaining": None, "reset": None}
    assert limits["workflow_executions"]["concurrent"]["limit"] == 7


_STORAGE = StorageLimit(None, 7, None, StoredBytes(files=7), RetentionDays(30, 7, 30, 30, 365))


async def test_storage_shows_what_the_files_of_the_tenant_leave(
    world: World, super_admin: Client
) -> None:
    client = await world.user("agent_developer", await world.tenant(limits={"storage_mb": 2}))
    await upload(client, b"12345")
    shown = (await _get_limits(super_admin, client.tenant_id))["storage"]
    # A worker may have counted the event of the upload.
    used = shown["used_bytes"]
    assert 5 <= used < 5000
    assert (shown["limit_bytes"], shown["remaining_bytes"]) == (2 * MEGABYTE, 2 * MEGABYTE - used)
    assert shown["by_kind"].keys() == msgspec.structs.asdict(StoredBytes()).keys()
    assert shown["by_kind"]["files"] == 5
    assert shown["retention_days"] == {
        "events": 365,
        "test_events": 7,
        "payloads": 90,
        "executions": 365,
        "conversations": 3650,
    }


async def test_without_redis_it_is_unknown_what_remains(world: World, stores: Stores) -> None:
    client = await world.user("tenant_admin", await world.tenant("free"))
    away = msgspec.structs.replace(stores.settings, redis_url=f"redis://127.0.0.1:{free_port()}/0")
    app = create_app(away)
    limits = (await get_usage(Client(app, client.token)))["limits"]
    assert limits["plan"] == "free"
    assert limits["minute"] == {"limit": 60, "remaining": None, "reset": None}
    assert limits["hour"] == {"limit": 1000, "remaining": None, "reset": None}
    await app.state.services.close()


def test_what_remains_is_never_negative_and_a_burst_raises_the_limit(
    subtests: pytest.Subtests,
) -> None:
    plan = PLANS["free"]
    cases = [
        # Start of the burst, used units, limit and remaining units.
        (0, 10, 60, 50),
        (0, 70, 60, 0),
        (995, 45, 120, 75),
        (995, 70, 120, 50),
        (990, 70, 60, 0),
        (985, 70, 60, 0),
        (995, 130, 120, 0),
    ]
    for start, used, limit, remaining in cases:
        with subtests.test(start=start, used=used):
            state = LimiterState(1000, start, used, 1060, 2000, 4600, 3, 87400)
            limits = build_limits("free", plan, state, ExecutionLoad(9, 4), _STORAGE)
            assert (limits.minute.limit, limits.minute.remaining) == (limit, remaining)
            assert limits.hour.remaining == 0
            assert limits.day.remaining == 9997
            executions = limits.workflow_executions
            assert (executions.per_minute.remaining, executions.concurrent.remaining) == (0, 0)
            assert executions.concurrent.running == 4
            assert limits.storage is _STORAGE
