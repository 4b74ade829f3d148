"""Lists of many rows: totals are exact or marked as estimates, and few rows are read."""

import itertools
import random
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from app.kit.paging import MAX_ROWS
from app.services import Services
from db import lists
from db.lists import Where
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.lengths import rounds
from tests.list_bounds import LOW_BOUND, lowered_bound
from tests.platform.events.large_dataset import (
    BEFORE,
    BIG,
    COMMON,
    COUNT,
    END,
    RARE,
    SECONDS,
    START,
    LargeDataset,
    StoredRow,
    create_dataset,
    delete_dataset,
)
from tests.platform.events.query_plans import Plan, explain, record_statements
from tests.world import Client, World

LOG = "/api/v1/event-log"


@pytest.fixture(scope="module")
async def dataset(world: World) -> AsyncIterator[LargeDataset]:
    dataset = await create_dataset(world)
    with lowered_bound():
        yield dataset
    await delete_dataset(world.services, dataset)


def _at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def _share(part: float) -> str:
    """Returns the moment at this part of the time that the rows cover."""
    return _at(part * SECONDS)


async def _read_list(caller: Client, path: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = await caller.get(path, params=params)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


# Totals


def _oldest_rows(count: int) -> dict[str, str]:
    """Returns filters that match so many rows; `count` is a multiple of three."""
    return {"from": _at(0), "to": _at(count / 3 - 1)}


async def test_up_to_the_bound_the_total_is_exact(
    dataset: LargeDataset, super_admin: Client, subtests: pytest.Subtests
) -> None:
    for count in (3, LOW_BOUND - 1):
        for role in ("owner", "super_admin"):
            with subtests.test(count=count, role=role):
                caller = dataset.owner if role == "owner" else super_admin
                body = await _read_list(caller, LOG, _oldest_rows(count))
                assert body["total"] == count
                assert "estimated" not in body


async def test_the_total_is_exact_up_to_and_including_the_bound(
    dataset: LargeDataset, services: Services
) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        for count, is_exact in ((LOW_BOUND - 1, True), (LOW_BOUND, True), (LOW_BOUND + 1, False)):
            where = Where(dataset.owner.tenant_id)
            source = f"FROM (SELECT 1 FROM event_log WHERE {where.sql} LIMIT {where.bind(count)}) e"
            page = f"1 {source} LIMIT $limit OFFSET $offset"
            _, total = await lists.fetch_page(tx, where, page, 20, 0, counted=source)
            assert total.is_exact is is_exact
            assert total.count == count if is_exact else total.count > LOW_BOUND


def _executions_path(dataset: LargeDataset) -> str:
    return f"/api/v1/webhooks/{dataset.webhook_id}/executions"


def _is_near(total: int, count: int) -> bool:
    """The planner estimates from samples and treats conditions as independent."""
    return max(LOW_BOUND, count / 2) < total < count * 2


async def test_beyond_the_bound_the_total_of_the_log_is_marked_as_an_estimate(
    dataset: LargeDataset, super_admin: Client, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str]] = [{}, {"event_type": COMMON}]
    for params in cases:
        for role in ("owner", "super_admin"):
            with subtests.test(params=params, role=role):
                window = {"from": BEFORE.isoformat(), "to": END.isoformat()}
                caller = dataset.owner if role == "owner" else super_admin
                body = await _read_list(
                    caller, LOG, params if role == "owner" else {**params, **window}
                )
                assert body["estimated"] is True
                assert _is_near(body["total"], COUNT if role == "owner" else 2 * COUNT)


async def test_beyond_the_bound_the_total_of_executions_is_marked_as_an_estimate(
    dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str]] = [{}, {"status": "delivered"}]
    for params in cases:
        with subtests.test(params=params):
            body = await _read_list(dataset.owner, _executions_path(dataset), params)
            assert body["estimated"] is True
            assert _is_near(body["total"], COUNT)


# Pages compared with filters in Python


def _matches(row: StoredRow, params: dict[str, Any], kind: str) -> bool:
    return (
        params.get(kind) in {None, row.kind}
        and params.get("correlation_id") in {None, row.correlation_id}
        and ("from" not in params or row.at >= datetime.fromisoformat(params["from"]))
        and ("to" not in params or row.at <= datetime.fromisoformat(params["to"]))
    )


def _random_filters(
    rng: random.Random, kinds: dict[str, list[str]], *, bounded: bool
) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name, values in kinds.items():
        if rng.random() < 0.5:
            params[name] = rng.choice(values)
    seconds = sorted(rng.choice([rng.randrange(SECONDS), rng.random() * SECONDS]) for _ in "ab")
    if bounded or rng.random() < 0.5:
        params["from"] = _at(seconds[0])
    if bounded or rng.random() < 0.5:
        params["to"] = _at(seconds[1])
    params["per_page"] = rng.choice([1, 7, 20, 100])
    params["page"] = rng.choice([1, 1, 2, 5, 40])
    return params


def _check_page(
    body: dict[str, Any], rows: list[StoredRow], params: dict[str, Any], kind: str
) -> None:
    expected = [row.id for row in rows if _matches(row, params, kind)]
    first = (params["page"] - 1) * params["per_page"]
    ids = [entry["id"] for entry in body["data"]]
    assert ids == expected[first : first + params["per_page"]], params
    if len(expected) <= LOW_BOUND:
        assert (body["total"], body.get("estimated", False)) == (len(expected), False), params
    else:
        assert body["total"] > LOW_BOUND, params
        assert body["estimated"] is True


async def test_pages_of_the_log_equal_those_filtered_in_python(
    dataset: LargeDataset, super_admin: Client, subtests: pytest.Subtests
) -> None:
    for role in ("owner", "super_admin"):
        for seed in range(rounds(1, 4)):
            with subtests.test(role=role, seed=seed):
                caller = dataset.owner if role == "owner" else super_admin
                rng = random.Random(seed)
                kinds = {
                    "event_type": [COMMON, RARE, "many.none"],
                    "correlation_id": [BIG, "cor_many_0", "cor_many_100", "cor_many_none"],
                }
                for _ in range(rounds(12, 25)):
                    params = _random_filters(rng, kinds, bounded=role == "super_admin")
                    if role == "owner":
                        # Leaves out later events, like the creation of the webhook.
                        params.setdefault("to", END.isoformat())
                    _check_page(
                        await _read_list(caller, LOG, params), dataset.events, params, "event_type"
                    )


async def test_pages_of_executions_equal_those_filtered_in_python(
    dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    for seed in range(rounds(1, 4)):
        with subtests.test(seed=seed):
            rng = random.Random(seed)
            kinds = {"status": ["delivered", "failed", "pending"]}
            for _ in range(rounds(12, 25)):
                params = _random_filters(rng, kinds, bounded=False)
                body = await _read_list(dataset.owner, _executions_path(dataset), params)
                _check_page(body, dataset.deliveries, params, "status")


# Rows that are read


class Explainer(msgspec.Struct):
    services: Services
    monkeypatch: pytest.MonkeyPatch

    async def explain_list(
        self, table: str, client: Client, path: str, query: dict[str, Any]
    ) -> tuple[Plan, Plan]:
        """Returns the plans of the count and of the page."""
        with record_statements(self.monkeypatch, table) as statements:
            await _read_list(client, path, query)
        plans = [await explain(self.services, statement) for statement in statements]
        page_plan, count_plan = plans[0].split_count()
        # A page beyond the last has no row to return the total with, so it is counted apart.
        count_plan = plans[1] if len(plans) > 1 else count_plan
        assert len(plans) == 1 or not page_plan.nodes[0]["Actual Rows"]
        assert count_plan.scans_without_index(table) == []
        assert page_plan.scans_without_index(table) == []
        return count_plan, page_plan


@pytest.fixture
def explainer(services: Services, monkeypatch: pytest.MonkeyPatch) -> Explainer:
    return Explainer(services, monkeypatch)


async def _count_tenants(services: Services) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count: int = await (await tx.raw()).fetchval("SELECT count(*) FROM tenants")
    return count


def _with_margin(rows: int) -> int:
    """Allows for rows of the rare type that a filter on the common type removes."""
    return rows + rows // 100 + 1


FILTERS: list[dict[str, Any]] = [
    {},
    {"event_type": COMMON},
    {"event_type": RARE},
    {"event_type": "many.none"},
    {"correlation_id": BIG},
    {"correlation_id": "cor_many_100"},
    {"from": _share(0.02)},
    {"to": _share(0.88)},
    {"from": _share(0.38), "to": _share(0.46)},
    {"event_type": COMMON, "to": _share(0.88)},
    {"event_type": RARE, "from": _share(0.02), "to": _share(0.88)},
    {"correlation_id": BIG, "to": _share(0.5)},
    {"event_type": COMMON, "correlation_id": "cor_many_100"},
]


def _describe(params: dict[str, Any]) -> str:
    return "+".join(f"{name}={str(value)[-12:]}" for name, value in params.items()) or "all"


async def test_a_page_of_the_log_reads_no_more_than_it_must(
    explainer: Explainer, dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    for params, page in itertools.product(FILTERS, (1, 10)):
        with subtests.test(params=_describe(params), page=page):
            query = {**params, "page": page, "per_page": 20}
            count_plan, page_plan = await explainer.explain_list(
                "event_log", dataset.owner, LOG, query
            )
            # Each row of the page once through the index, and once for its columns.
            assert page_plan.rows_read("event_log") <= _with_margin(20 * page) + 20
            assert page_plan.sorted_rows() <= 20 * page
            assert count_plan.rows_read("event_log") <= _with_margin(LOW_BOUND + 1)
            assert count_plan.sorted_rows() == 0


async def test_of_two_filters_one_uses_an_index(
    explainer: Explainer, dataset: LargeDataset
) -> None:
    query = {"event_type": RARE, "correlation_id": "cor_many_1"}
    plans = await explainer.explain_list("event_log", dataset.owner, LOG, query)
    rare = sum(row.kind == RARE for row in dataset.events)
    for plan in plans:
        assert plan.rows_read("event_log") <= rare + 20


async def test_a_page_of_all_tenants_reads_a_page_of_each_at_most(
    explainer: Explainer,
    dataset: LargeDataset,
    super_admin: Client,
    services: Services,
    subtests: pytest.Subtests,
) -> None:
    tenants = await _count_tenants(services)
    # A short run tries half of them, which are the same conditions within each tenant.
    for params, page in [*zip(FILTERS[:: rounds(2, 1)], itertools.repeat(1)), ({}, 10)]:
        with subtests.test(params=_describe(params), page=page):
            query = {**params, "page": page, "per_page": 20}
            count_plan, page_plan = await explainer.explain_list(
                "event_log", super_admin, LOG, query
            )
            assert page_plan.rows_read("event_log") <= _with_margin(tenants * 20 * page) + 20
            assert page_plan.sorted_rows() <= tenants * 20 * page
            # Postgres rounds the rows of each tenant to hundredths.
            counted = LOW_BOUND + 1 + tenants // 200
            assert count_plan.rows_read("event_log") <= _with_margin(counted)


EXECUTIONS: list[dict[str, Any]] = [
    {},
    {"status": "delivered"},
    {"status": "failed"},
    {"status": "pending"},
    {"from": _share(0.02), "to": _share(0.88)},
    {"status": "failed", "from": _share(0.02), "to": _share(0.88)},
    {"status": "delivered", "to": _share(0.5)},
]


async def test_a_page_of_executions_reads_no_more_than_it_must(
    explainer: Explainer, dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    for params, page in itertools.product(EXECUTIONS, (1, 10)):
        with subtests.test(params=_describe(params), page=page):
            query = {**params, "page": page, "per_page": 20}
            count_plan, page_plan = await explainer.explain_list(
                "deliveries", dataset.owner, _executions_path(dataset), query
            )
            # One page of each requested status through the index, and one page for its columns.
            statuses = 1 if "status" in params else 3
            assert page_plan.rows_read("deliveries") <= _with_margin(statuses * 20 * page) + 20
            assert page_plan.sorted_rows() <= statuses * 20 * page
            assert count_plan.rows_read("deliveries") <= _with_margin(LOW_BOUND + 1)


async def test_a_page_beyond_the_first_rows_of_a_long_list_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    dataset: LargeDataset,
    services: Services,
    subtests: pytest.Subtests,
) -> None:
    for table in ("event_log", "deliveries"):
        with subtests.test(table=table):
            path = LOG if table == "event_log" else _executions_path(dataset)
            deepest = {"page": MAX_ROWS // 100, "per_page": 100}
            assert (await _read_list(dataset.owner, path, deepest))["data"] == []
            with record_statements(monkeypatch, table) as statements:
                answer = await dataset.owner.get(
                    path, params={**deepest, "page": deepest["page"] + 1}
                )
            error = refused(answer, 422, "validation_error")
            assert "first 100,000 rows" in error["details"]["page"]
            # Only the bounded count.
            [statement] = statements
            plan = await explain(services, statement)
            assert plan.rows_read(table) <= _with_margin(LOW_BOUND + 1)


async def test_one_trace_reads_only_its_own_rows(
    monkeypatch: pytest.MonkeyPatch, dataset: LargeDataset, services: Services
) -> None:
    with record_statements(monkeypatch, "event_log") as statements:
        trace = await _read_list(dataset.owner, f"{LOG}/trace/cor_many_100", {})
    (statement,) = statements
    plan = await explain(services, statement)
    assert len(trace["data"]) == 15
    assert plan.scans_without_index("event_log") == []
    assert plan.rows_read("event_log") == 15
