"""Rate limits: the responses of the HTTP API."""

from collections.abc import Callable

import msgspec
import pytest
from litestar import Litestar

from app.main import create_app
from app.security import plans
from app.services import Services
from tests.http.conftest import ANONYMOUS_PER_MINUTE
from tests.stores import Stores
from tests.world import Client, World


async def test_headers_show_the_tightest_window(world: World) -> None:
    plan = {"requests_per_minute": 100, "requests_per_hour": 5}
    user = await world.user("agent_user", await world.tenant(limits=plan))
    answer = await user.get("/auth/me")
    assert answer.headers["x-ratelimit-window"] == "3600"
    assert answer.headers["x-ratelimit-limit"] == "5"
    assert answer.headers["x-ratelimit-remaining"] == "4"
    assert answer.headers["ratelimit-policy"] == '"hour";q=5;w=3600'


async def test_a_429_has_the_limit_and_the_time_to_retry(world: World) -> None:
    plan = {"requests_per_minute": 2, "burst_multiplier": 1}
    user = await world.user("agent_user", await world.tenant(limits=plan))
    assert (await user.get("/auth/me")).status_code == 200
    assert (await user.get("/auth/me")).status_code == 200
    answer = await user.get("/auth/me")
    assert answer.status_code == 429
    error = answer.json()["error"]
    assert error["code"] == "rate_limited"
    assert error["details"]["limit"] == 2
    assert error["details"]["window"] == 60
    assert 1 <= error["details"]["retry_after"] <= 60
    assert answer.headers["retry-after"] == str(error["details"]["retry_after"])
    assert answer.headers["x-ratelimit-remaining"] == "0"


async def test_a_request_costs_by_its_type(world: World, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str, int]] = [
        ("GET", "/auth/me", 1),
        ("POST", "/users/invite", 2),
        ("DELETE", "/api/v1/tenants/ten_none", 2),
        ("PUT", "/api/v1/tenants/ten_none", 2),
        ("POST", "/test/chat", 10),
        ("POST", "/test//chat", 10),
        ("POST", "/test/chat//", 10),
        ("GET", "/nowhere", 1),
    ]
    for method, path, cost in cases:
        with subtests.test(method=method, path=path):
            user = await world.user(
                "viewer", await world.tenant(limits={"requests_per_minute": 100})
            )
            answer = await user(method, path)
            assert answer.headers["x-ratelimit-remaining"] == str(100 - cost)


async def test_all_users_of_a_tenant_share_its_limit(world: World) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 50})
    first, second = await world.user("viewer", tenant), await world.user("viewer", tenant)
    await first.get("/auth/me")
    answer = await second.get("/auth/me")
    assert answer.headers["x-ratelimit-remaining"] == "48"


async def test_free_plan_bursts_to_twice_its_minute(world: World) -> None:
    user = await world.user("viewer", await world.tenant("free"))
    answers = [await user.get("/auth/me") for _ in range(121)]
    assert [answer.status_code for answer in answers] == [200] * 120 + [429]
    # From the first request of the burst, all headers show the limit of the burst.
    headers = [answer.headers for answer in answers]
    assert [int(header["x-ratelimit-limit"]) for header in headers] == [60] * 60 + [120] * 61
    assert [int(header["x-ratelimit-remaining"]) for header in headers] == [
        *range(59, -1, -1),
        *range(59, -1, -1),
        0,
    ]
    for header in headers:
        limit, remaining = header["x-ratelimit-limit"], header["x-ratelimit-remaining"]
        assert header["ratelimit-policy"] == f'"minute";q={limit};w=60'
        assert header["ratelimit"].startswith(f'"minute";r={remaining};t=')
    details = answers[-1].json()["error"]["details"]
    assert (details["limit"], details["window"]) == (120, 60)


def test_the_plans_have_their_documented_limits(subtests: pytest.Subtests) -> None:
    for plan in ["free", "pro", "team", "enterprise"]:
        with subtests.test(plan=plan):
            expected = {
                "free": (60, 1_000, 10_000, 5, 1, 2, 10, 1_024, 100_000),
                "pro": (300, 10_000, 100_000, 30, 5, 3, 30, 10_240, 1_000_000),
                "team": (600, 30_000, 300_000, 60, 10, 5, 60, 102_400, 5_000_000),
                "enterprise": (1_200, 0, 0, 300, 50, 5, 60, 512_000, 10_000_000),
            }
            # Of events, payloads, executions and conversations.
            days = {
                "free": (30, 30, 30, 365),
                "pro": (90, 90, 90, 1_095),
                "team": (180, 90, 180, 3_650),
                "enterprise": (365, 90, 365, 3_650),
            }
            assert msgspec.structs.astuple(plans.PLANS[plan]) == (*expected[plan], *days[plan])


async def _exceed_limit(
    caller: Client, headers: Callable[[int], dict[str, str]] = lambda _: {}
) -> list[int]:
    """Returns the statuses of one request more than callers without login may send in a minute."""
    return [
        (await caller.get("/auth/me", headers=headers(number))).status_code
        for number in range(ANONYMOUS_PER_MINUTE + 1)
    ]


async def test_callers_without_login_are_limited_by_address(
    changed_app: Litestar, services: Services
) -> None:
    await services.redis.flushdb()
    caller = Client(changed_app, address="192.0.2.1")
    assert await _exceed_limit(caller) == [*[401] * ANONYMOUS_PER_MINUTE, 429]
    assert (await caller.get("/health/live")).status_code == 200
    await services.redis.flushdb()


async def test_a_forwarded_address_counts_only_from_a_trusted_proxy(
    changed_app: Litestar, services: Services
) -> None:
    def forward(number: int) -> dict[str, str]:
        return {"x-forwarded-for": f"198.51.100.{number}"}

    for address, expected in (("192.0.2.1", 429), ("10.0.0.1", 401)):
        await services.redis.flushdb()
        statuses = await _exceed_limit(Client(changed_app, address=address), forward)
        assert statuses[-1] == expected, address
    await services.redis.flushdb()


async def _count_commands(services: Services, user: Client) -> dict[str, int]:
    """Returns how often Redis ran each command during a request."""
    await services.redis.config_resetstat()
    assert (await user.get("/auth/me")).status_code == 200
    stats = await services.redis.info("commandstats")
    return {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in stats.items()}


async def test_session_check_and_limit_are_one_round_trip(world: World, services: Services) -> None:
    user = await world.user("agent_user")
    await user.get("/auth/me")
    # A worker of another test uses Redis too; the commands of the request are in every count.
    counts = [await _count_commands(services, user) for _ in range(3)]
    assert min(count["evalsha"] for count in counts) == 1
    # All other commands ran inside the script.
    script_commands = {
        "mget",
        "time",
        "hmget",
        "lrange",
        "lindex",
        "rpush",
        "lset",
        "hset",
        "expire",
        "ltrim",
    }
    commands = set.intersection(*map(set, counts))
    assert commands - script_commands <= {"evalsha", "config|resetstat", "config", "info"}


async def _end_session(services: Services, user: Client) -> None:
    async with services.db.tx(user.tenant_id) as tx:
        await (await tx.raw()).execute(
            "UPDATE sessions SET ended_at = now() WHERE id = $1", user.session_id
        )


async def test_without_redis_requests_are_not_limited_but_sessions_are_checked(
    world: World, services: Services, stores: Stores
) -> None:
    user = await world.user("agent_user")
    app = create_app(stores.settings)
    caller = Client(app, user.token)
    assert (await caller.get("/auth/me")).status_code == 200
    stores.stop_redis()
    try:
        answer = await caller.get("/auth/me")
        assert answer.status_code == 200
        assert "x-ratelimit-limit" in answer.headers
        await _end_session(services, user)
        assert (await caller.get("/auth/me")).status_code == 401
        assert b"parley_limiter_degraded_total" in (await app.state.reports.metrics.read())[0]
    finally:
        stores.start_redis()
    await app.state.services.close()


async def test_a_request_with_an_ended_session_is_not_charged_to_its_tenant(
    world: World, services: Services
) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 3, "burst_multiplier": 1})
    ended, active = await world.user("viewer", tenant), await world.user("viewer", tenant)
    await _end_session(services, ended)
    assert (await ended.get("/auth/me")).status_code == 401
    statuses = [(await active.get("/auth/me")).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]


async def test_an_ended_session_is_refused_although_its_cached_copy_is_active(
    world: World, services: Services
) -> None:
    user = await world.user("viewer")
    assert (await user.get("/auth/me")).status_code == 200
    await _end_session(services, user)
    await services.redis.delete("parley:grants")
    assert (await user.get("/auth/me")).status_code == 401
    assert (await user.get("/auth/me")).status_code == 401


async def test_the_forwarded_address_is_parsed_in_every_form_of_proxies(
    changed_app: Litestar, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[list[str], str]] = [
        (["203.0.113.9"], "203.0.113.9"),
        (["203.0.113.9", "10.0.0.1"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9:443"], "203.0.113.9"),
        (["[2001:db8:1:2::7]:443"], "2001:db8:1:2::"),
    ]
    for lines, subject in cases:
        with subtests.test(lines=lines, subject=subject):
            await services.redis.flushdb()
            headers = [("x-forwarded-for", line) for line in lines]
            await Client(changed_app).get("/auth/me", headers=headers)
            assert await services.redis.exists(f"parley:limit:{subject}")
