"""Lists of many rows: what is told is exact or says that it is not, and little is read for it."""

import random
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.services import Services
from db import counting
from db.counting import BOUND
from db.session import ALL_TENANTS
from tests.events.many import (
    BEFORE,
    BIG,
    COMMON,
    COUNT,
    END,
    RARE,
    START,
    Many,
    Written,
    forgotten,
    written,
)
from tests.events.plans import Plan, noted, plan_of
from tests.world import Client, World

LOG = "/api/v1/event-log"


@pytest.fixture(scope="module")
async def many(world: World) -> AsyncIterator[Many]:
    made = await written(world)
    yield made
    await forgotten(world.services, made)


def _at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


async def _list(caller: Client, path: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = await caller.get(path, params=params)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


# How many there are


def _oldest(many: Many, count: int) -> dict[str, str]:
    """Filters that leave so many rows, which is a multiple of three."""
    return {"from": _at(0), "to": _at(count / 3 - 1)}


@pytest.mark.parametrize("count", [3, 4_998])
@pytest.mark.parametrize("who", ["owner", "super_admin"])
async def test_up_to_the_bound_rows_are_counted(
    many: Many, super_admin: Client, count: int, who: str
) -> None:
    caller = many.owner if who == "owner" else super_admin
    told = await _list(caller, LOG, _oldest(many, count))
    assert told["total"] == count
    assert "estimated" not in told


async def test_the_bound_itself_is_counted_and_one_more_is_not(
    many: Many, services: Services
) -> None:
    source = "FROM (SELECT 1 FROM event_log WHERE tenant_id = $1 LIMIT $2::int) e"
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        for wanted, exact in ((BOUND - 1, True), (BOUND, True), (BOUND + 1, False)):
            counted = await counting.count_rows(tx, many.owner.tenant_id, source, wanted)
            assert counted.is_exact is exact
            assert counted.count == wanted if exact else counted.count > BOUND


def _executions(many: Many) -> str:
    return f"/api/v1/webhooks/{many.webhook_id}/executions"


def _is_near(total: int, real: int) -> bool:
    """The planner takes conditions for independent of each other, and knows samples only."""
    return max(BOUND, real / 2) < total < real * 2


@pytest.mark.parametrize("params", [{}, {"event_type": COMMON}])
@pytest.mark.parametrize("who", ["owner", "super_admin"])
async def test_beyond_the_bound_the_total_of_the_log_is_an_estimate_and_says_so(
    many: Many, super_admin: Client, params: dict[str, str], who: str
) -> None:
    window = {"from": BEFORE.isoformat(), "to": END.isoformat()}
    caller = many.owner if who == "owner" else super_admin
    told = await _list(caller, LOG, params if who == "owner" else {**params, **window})
    assert told["estimated"] is True
    assert _is_near(told["total"], COUNT if who == "owner" else 2 * COUNT)


@pytest.mark.parametrize("params", [{}, {"status": "delivered"}])
async def test_beyond_the_bound_the_total_of_executions_is_an_estimate_and_says_so(
    many: Many, params: dict[str, str]
) -> None:
    told = await _list(many.owner, _executions(many), params)
    assert told["estimated"] is True
    assert _is_near(told["total"], COUNT)


# The same as by hand


def _fits(row: Written, params: dict[str, Any], kind: str) -> bool:
    return (
        params.get(kind) in {None, row.kind}
        and params.get("correlation_id") in {None, row.correlation_id}
        and ("from" not in params or row.at >= datetime.fromisoformat(params["from"]))
        and ("to" not in params or row.at <= datetime.fromisoformat(params["to"]))
    )


def _random_filters(
    dice: random.Random, kinds: dict[str, list[str]], *, bounded: bool
) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name, values in kinds.items():
        if dice.random() < 0.5:
            params[name] = dice.choice(values)
    seconds = sorted(dice.choice([dice.randrange(8_000), dice.random() * 8_000]) for _ in "ab")
    if bounded or dice.random() < 0.5:
        params["from"] = _at(seconds[0])
    if bounded or dice.random() < 0.5:
        params["to"] = _at(seconds[1])
    params["per_page"] = dice.choice([1, 7, 20, 100])
    params["page"] = dice.choice([1, 1, 2, 5, 40])
    return params


def _check(told: dict[str, Any], rows: list[Written], params: dict[str, Any], kind: str) -> None:
    wanted = [row.id for row in rows if _fits(row, params, kind)]
    first = (params["page"] - 1) * params["per_page"]
    ids = [entry["id"] for entry in told["data"]]
    assert ids == wanted[first : first + params["per_page"]], params
    if len(wanted) <= BOUND:
        assert (told["total"], told.get("estimated", False)) == (len(wanted), False), params
    else:
        assert told["total"] > BOUND, params
        assert told["estimated"] is True


@pytest.mark.parametrize("who", ["owner", "super_admin"])
@pytest.mark.parametrize("seed", range(4))
async def test_pages_of_the_log_are_those_found_by_hand(
    many: Many, super_admin: Client, who: str, seed: int
) -> None:
    caller = many.owner if who == "owner" else super_admin
    dice = random.Random(seed)
    kinds = {
        "event_type": [COMMON, RARE, "many.none"],
        "correlation_id": [BIG, "cor_many_0", "cor_many_777", "cor_many_none"],
    }
    for _ in range(25):
        params = _random_filters(dice, kinds, bounded=who == "super_admin")
        if who == "owner":
            # What happened since, like the webhook's own making, is no part of it.
            params.setdefault("to", END.isoformat())
        _check(await _list(caller, LOG, params), many.events, params, "event_type")


@pytest.mark.parametrize("seed", range(4))
async def test_pages_of_executions_are_those_found_by_hand(many: Many, seed: int) -> None:
    dice = random.Random(seed)
    kinds = {"status": ["delivered", "failed", "pending"]}
    for _ in range(25):
        params = _random_filters(dice, kinds, bounded=False)
        told = await _list(many.owner, _executions(many), params)
        _check(told, many.deliveries, params, "status")


# What is read for it


async def _plans(
    monkeypatch: pytest.MonkeyPatch,
    services: Services,
    table: str,
    ask: Callable[[], Any],
) -> tuple[Plan, Plan]:
    """Of the count, and of the page."""
    with noted(monkeypatch, table) as found:
        await ask()
    counted, page = [await plan_of(services, statement) for statement in found]
    return counted, page


async def _tenants(services: Services) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count: int = await (await tx.raw()).fetchval("SELECT count(*) FROM tenants")
    return count


def _about(rows: int) -> int:
    """Where nearly all rows are of one type, one in some hundreds may be passed over."""
    return rows + rows // 100 + 1


FILTERS: list[dict[str, Any]] = [
    {},
    {"event_type": COMMON},
    {"event_type": RARE},
    {"event_type": "many.none"},
    {"correlation_id": BIG},
    {"correlation_id": "cor_many_777"},
    {"from": _at(100)},
    {"to": _at(7_000)},
    {"from": _at(3_000), "to": _at(3_600)},
    {"event_type": COMMON, "to": _at(7_000)},
    {"event_type": RARE, "from": _at(100), "to": _at(7_000)},
    {"correlation_id": BIG, "to": _at(4_000)},
    {"event_type": COMMON, "correlation_id": "cor_many_777"},
]


def _name(params: dict[str, Any]) -> str:
    return "+".join(f"{name}={str(value)[-12:]}" for name, value in params.items()) or "all"


@pytest.mark.parametrize("page", [1, 10])
@pytest.mark.parametrize("params", FILTERS, ids=_name)
async def test_a_page_of_the_log_reads_no_more_than_it_must(
    monkeypatch: pytest.MonkeyPatch,
    many: Many,
    services: Services,
    params: dict[str, Any],
    page: int,
) -> None:
    asked = {**params, "page": page, "per_page": 20}
    counted, found = await _plans(
        monkeypatch, services, "event_log", lambda: _list(many.owner, LOG, asked)
    )
    assert counted.scanned("event_log") == found.scanned("event_log") == []
    # Each row of the page once by the index, and once for itself.
    assert found.read("event_log") <= _about(20 * page) + 20
    assert found.sorted_rows() <= 20 * page
    assert counted.read("event_log") <= _about(BOUND + 1)
    assert counted.sorted_rows() == 0


async def test_of_two_filters_one_is_met_by_an_index_and_the_other_by_looking(
    monkeypatch: pytest.MonkeyPatch, many: Many, services: Services
) -> None:
    asked = {"event_type": RARE, "correlation_id": "cor_many_1"}
    plans = await _plans(monkeypatch, services, "event_log", lambda: _list(many.owner, LOG, asked))
    rare = sum(row.kind == RARE for row in many.events)
    for plan in plans:
        assert plan.scanned("event_log") == []
        assert plan.read("event_log") <= rare + 20


@pytest.mark.parametrize("page", [1, 10])
@pytest.mark.parametrize("params", FILTERS, ids=_name)
async def test_a_page_of_all_tenants_reads_a_page_of_each_at_most(
    monkeypatch: pytest.MonkeyPatch,
    many: Many,
    super_admin: Client,
    services: Services,
    params: dict[str, Any],
    page: int,
) -> None:
    asked = {**params, "page": page, "per_page": 20}
    counted, found = await _plans(
        monkeypatch, services, "event_log", lambda: _list(super_admin, LOG, asked)
    )
    tenants = await _tenants(services)
    assert counted.scanned("event_log") == found.scanned("event_log") == []
    assert found.read("event_log") <= _about(tenants * 20 * page) + 20
    assert found.sorted_rows() <= tenants * 20 * page
    assert counted.read("event_log") <= _about(BOUND + 1)


EXECUTIONS: list[dict[str, Any]] = [
    {},
    {"status": "delivered"},
    {"status": "failed"},
    {"status": "pending"},
    {"from": _at(100), "to": _at(7_000)},
    {"status": "failed", "from": _at(100), "to": _at(7_000)},
    {"status": "delivered", "to": _at(4_000)},
]


@pytest.mark.parametrize("page", [1, 10])
@pytest.mark.parametrize("params", EXECUTIONS, ids=_name)
async def test_a_page_of_executions_reads_no_more_than_it_must(
    monkeypatch: pytest.MonkeyPatch,
    many: Many,
    services: Services,
    params: dict[str, Any],
    page: int,
) -> None:
    asked = {**params, "page": page, "per_page": 20}
    counted, found = await _plans(
        monkeypatch, services, "deliveries", lambda: _list(many.owner, _executions(many), asked)
    )
    assert counted.scanned("deliveries") == found.scanned("deliveries") == []
    # A page of each status that is asked for, of those one page, and its rows for themselves.
    statuses = 1 if "status" in params else 3
    assert found.read("deliveries") <= _about(statuses * 20 * page) + 20
    assert found.sorted_rows() <= statuses * 20 * page
    assert counted.read("deliveries") <= _about(BOUND + 1)


async def test_one_trace_reads_only_its_own_rows(
    monkeypatch: pytest.MonkeyPatch, many: Many, services: Services
) -> None:
    with noted(monkeypatch, "event_log") as found:
        trace = await _list(many.owner, f"{LOG}/trace/cor_many_777", {})
    (statement,) = found
    plan = await plan_of(services, statement)
    assert len(trace["data"]) == 15
    assert plan.scanned("event_log") == []
    assert plan.read("event_log") == 15
