"""Rate limits: gate.lua compared with an oracle, and the responses of the HTTP API."""

import asyncio
import itertools

import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.http.gate import SCRIPT
from app.kit import limits
from app.kit.redis import LuaScriptClient
from app.main import create_app
from app.services import Services
from tests.http.oracle import Oracle
from tests.stores import Stores
from tests.world import Client, World

_subject = itertools.count()


@pytest.fixture(scope="module")
def script(stores: Stores) -> "Script":
    return Script(redis.Redis.from_url(stores.redis.url))


class Script:
    """gate.lua, run at a time that the test sets."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._run = client.register_script(SCRIPT)

    def ask(self, subject: str, plan: str, now: int, units: int) -> limits.Verdict:
        keys = ["", "", "", subject, f"{subject}:m", f"{subject}:h", f"{subject}:d"]
        args: list[str | int] = [now, units, "0", plan, "", "", "", 60]
        _, _, allowed, window, limit, left, reset, retry = self._run(keys=keys, args=args)
        return limits.Verdict(bool(allowed), window, limit, left, reset, retry)

    def forget(self, subject: str) -> None:
        self._client.delete(subject, f"{subject}:m", f"{subject}:h", f"{subject}:d")


PLANS = st.builds(
    lambda minute, hour, day, times, burst: (minute, hour, day, times, burst),
    st.integers(1, 30),
    st.sampled_from([0, 5, 20, 60]),
    st.sampled_from([0, 8, 40, 90]),
    st.integers(1, 4),
    st.sampled_from([0, 1, 5, 10, 30, 60]),
)
# Mostly seconds apart, sometimes across the edge of a window.
STEPS = st.lists(
    st.tuples(
        st.one_of(
            st.integers(0, 3),
            st.sampled_from([9, 10, 29, 30, 58, 59, 60, 61, 3599, 3600, 86399, 86400]),
        ),
        st.sampled_from([1, 2, 5, 10]),
    ),
    max_size=120,
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(plan=PLANS, steps=STEPS)
def test_the_script_decides_as_the_oracle_does(
    script: Script, plan: tuple[int, int, int, int, int], steps: list[tuple[int, int]]
) -> None:
    subject = f"oracle:{next(_subject)}"
    minute, hour, day, times, burst = plan
    oracle = Oracle(minute, hour, day, times, burst)
    script_plan = ",".join(map(str, plan))
    now = 1_000_000
    for pause, units in steps:
        now += pause
        verdict = script.ask(subject, script_plan, now, units)
        admitted, wait = oracle.ask(now, units)
        assert verdict.allowed == admitted
        assert verdict.retry_after == wait
        assert verdict.remaining == (oracle.remaining(now) if admitted else 0)
    script.forget(subject)


def test_a_refused_request_costs_nothing(script: Script) -> None:
    subject = f"free:{next(_subject)}"
    assert script.ask(subject, "2,0,0,1,0", 100, 2).allowed
    for _ in range(50):
        assert not script.ask(subject, "2,0,0,1,0", 110, 1).allowed
    assert script.ask(subject, "2,0,0,1,0", 160, 2).allowed


def test_a_clock_that_steps_back_a_little_frees_nothing(script: Script) -> None:
    subject = f"back:{next(_subject)}"
    assert script.ask(subject, "1,0,0,1,0", 1000, 1).allowed
    assert not script.ask(subject, "1,0,0,1,0", 960, 1).allowed


def test_a_clock_that_once_ran_far_ahead_does_not_refuse_for_long(script: Script) -> None:
    subject = f"ahead:{next(_subject)}"
    assert script.ask(subject, "1,0,0,1,0", 90_000, 1).allowed
    assert script.ask(subject, "1,0,0,1,0", 1000, 1).allowed
    assert not script.ask(subject, "1,0,0,1,0", 1000, 1).allowed


def test_cost_does_not_grow_with_what_was_used(script: Script) -> None:
    """Many requests are stored, and the next request reads only a few entries."""
    subject = f"long:{next(_subject)}"
    for second in range(5000):
        assert script.ask(subject, "100,0,90000,1,0", 1000 + second, 1).allowed
    client = script._client
    client.config_resetstat()
    script.ask(subject, "100,0,90000,1,0", 6001, 1)
    stats = client.info("commandstats")
    assert stats["cmdstat_lrange"]["calls"] <= 4


# Responses of the HTTP API


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
    refused = await user.get("/auth/me")
    assert refused.status_code == 429
    error = refused.json()["error"]
    assert error["code"] == "rate_limited"
    assert error["details"]["limit"] == 2
    assert error["details"]["window"] == 60
    assert 1 <= error["details"]["retry_after"] <= 60
    assert refused.headers["retry-after"] == str(error["details"]["retry_after"])
    assert refused.headers["x-ratelimit-remaining"] == "0"


@pytest.mark.parametrize(
    ("method", "path", "cost"),
    [
        ("GET", "/auth/me", 1),
        ("POST", "/users/invite", 2),
        ("DELETE", "/api/v1/tenants/ten_none", 2),
        ("PUT", "/api/v1/tenants/ten_none", 2),
        ("POST", "/test/chat", 10),
        ("POST", "/test//chat", 10),
        ("POST", "/test/chat//", 10),
        ("GET", "/nowhere", 1),
    ],
)
async def test_a_request_costs_by_its_type(world: World, method: str, path: str, cost: int) -> None:
    user = await world.user("viewer", await world.tenant(limits={"requests_per_minute": 100}))
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


@pytest.mark.parametrize("plan", ["free", "pro", "team", "enterprise"])
def test_the_plans_have_their_documented_limits(plan: str) -> None:
    expected = {
        "free": (60, 1_000, 10_000, 5, 1, 2, 10),
        "pro": (300, 10_000, 100_000, 30, 5, 3, 30),
        "team": (600, 30_000, 300_000, 60, 10, 5, 60),
        "enterprise": (1_200, 0, 0, 300, 50, 5, 60),
    }
    assert msgspec.structs.astuple(limits.PLANS[plan]) == expected[plan]


async def test_callers_without_login_are_limited_by_address(
    stores: Stores, services: Services
) -> None:
    app = create_app(msgspec.structs.replace(stores.settings, anonymous_per_minute=3))
    await services.redis.flushdb()
    anonymous = Client(app)
    statuses = [(await anonymous.get("/auth/me")).status_code for _ in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert (await anonymous.get("/health/live")).status_code == 200
    await services.redis.flushdb()
    await app.state.services.close()


async def test_a_forwarded_address_counts_only_from_a_trusted_proxy(
    stores: Stores, services: Services
) -> None:
    direct = msgspec.structs.replace(stores.settings, anonymous_per_minute=2)
    behind_proxy = msgspec.structs.replace(direct, trusted_proxies=("10.0.0.0/8",))
    for settings_, expected in ((direct, 429), (behind_proxy, 401)):
        await services.redis.flushdb()
        app = create_app(settings_)
        caller = Client(app)
        for number in range(3):
            answer = await caller.get(
                "/auth/me", headers={"x-forwarded-for": f"198.51.100.{number}"}
            )
        assert answer.status_code == expected
        await app.state.services.close()
    await services.redis.flushdb()


async def test_session_check_and_limit_are_one_round_trip(world: World, services: Services) -> None:
    user = await world.user("agent_user")
    await user.get("/auth/me")
    await services.redis.config_resetstat()
    answer = await user.get("/auth/me")
    assert answer.status_code == 200
    stats = await services.redis.info("commandstats")
    calls = {name: entry["calls"] for name, entry in stats.items()}
    assert calls["cmdstat_evalsha"] == 1
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
    commands = {name.removeprefix("cmdstat_") for name in calls}
    assert commands - script_commands <= {"evalsha", "config|resetstat", "config", "info"}


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
        async with services.db.tx(user.tenant_id) as tx:
            await (await tx.raw()).execute(
                "UPDATE sessions SET ended_at = now() WHERE id = $1", user.session_id
            )
        assert (await caller.get("/auth/me")).status_code == 401
        metrics = (await caller.get("/metrics")).text
        assert "parley_limiter_degraded_total" in metrics
    finally:
        stores.start_redis()
    await app.state.services.close()


async def test_a_request_with_an_ended_session_is_not_charged_to_its_tenant(
    world: World, services: Services
) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 3, "burst_multiplier": 1})
    ended, active = await world.user("viewer", tenant), await world.user("viewer", tenant)
    async with services.db.tx(tenant) as tx:
        await (await tx.raw()).execute(
            "UPDATE sessions SET ended_at = now() WHERE id = $1", ended.session_id
        )
    assert (await ended.get("/auth/me")).status_code == 401
    statuses = [(await active.get("/auth/me")).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]


async def test_an_ended_session_is_refused_although_its_cached_copy_is_live(
    world: World, services: Services
) -> None:
    user = await world.user("viewer")
    assert (await user.get("/auth/me")).status_code == 200
    async with services.db.tx(user.tenant_id) as tx:
        await (await tx.raw()).execute(
            "UPDATE sessions SET ended_at = now() WHERE id = $1", user.session_id
        )
    await services.redis.delete("parley:grants")
    assert (await user.get("/auth/me")).status_code == 401
    assert (await user.get("/auth/me")).status_code == 401


@pytest.mark.parametrize(
    ("lines", "subject"),
    [
        (["203.0.113.9"], "203.0.113.9"),
        (["203.0.113.9", "10.0.0.1"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9:443"], "203.0.113.9"),
        (["[2001:db8:1:2::7]:443"], "2001:db8:1:2::"),
    ],
)
async def test_the_forwarded_address_is_parsed_in_every_form_of_proxies(
    stores: Stores, services: Services, lines: list[str], subject: str
) -> None:
    app = create_app(msgspec.structs.replace(stores.settings, trusted_proxies=("10.0.0.0/8",)))
    await services.redis.flushdb()
    headers = [("x-forwarded-for", line) for line in lines]
    await Client(app).get("/auth/me", headers=headers)
    assert await services.redis.exists(f"parley:limit:{subject}")
    await app.state.services.close()


async def test_concurrent_calls_to_an_unresponsive_redis_share_one_connection() -> None:
    connections = 0
    ended = asyncio.Event()

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = LuaScriptClient(f"redis://127.0.0.1:{port}", SCRIPT)
    errors = await asyncio.gather(
        *(client.run(("a",), (1,)) for _ in range(20)), return_exceptions=True
    )
    ended.set()
    client.close()
    server.close()
    await server.wait_closed()
    assert all(isinstance(error, TimeoutError) for error in errors)
    assert connections == 1
