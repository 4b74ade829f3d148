"""Many executions: a page reads few rows, whichever status and order it has."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.domain.automation.workflows import queries
from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import EXECUTIONS, PATH, create_published, transform
from tests.database import fetch_rows, run_sql
from tests.list_bounds import LOW_BOUND, lowered_bound
from tests.platform.events.query_plans import Plan, Statement, explain, record_statements
from tests.world import Client, World

_COUNT = 6600
# One in 60 failed, and a third of the others is pending.
_ADD = """
INSERT INTO workflow_executions (tenant_id, id, workflow_id, version, status, input, trigger_type,
                                 correlation_id, created_at, started_at, finished_at)
SELECT $1, $2 || lpad(n::text, 6, '0'), $2, 1, s.status, '{}', 'event', 'cor', s.moment, s.moment,
       CASE WHEN s.status <> 'pending' THEN s.moment + (n % 100) * interval '1 second' END
FROM generate_series(0, $3::int - 1) n,
LATERAL (SELECT CASE WHEN n % 60 = 0 THEN 'failed' WHEN n % 3 = 0 THEN 'pending'
                ELSE 'completed' END AS status,
                now() - interval '30 days' + n * interval '1 second' AS moment) s
"""
_TABLE = "workflow_executions"
_STATUSES = 6
# The executions of a tenant that are completed.
_MAX_GROUP = _COUNT * 2 // 3
_FINISHED_PAGES: list[dict[str, Any]] = [
    {"status": "completed", "sort": "finished_at"},
    {"status": "completed", "sort": "-finished_at", "page": 3},
    {"status": "failed", "sort": "-finished_at"},
    {"status": "cancelled", "sort": "finished_at"},
]
_PAGES: list[dict[str, Any]] = [
    {},
    {"page": 5},
    {"sort": "created_at"},
    {"status": "pending"},
    {"status": "completed"},
    {"status": "failed"},
    {"status": "cancelled"},
    {"status": "failed", "sort": "created_at", "page": 2},
    *_FINISHED_PAGES,
]


class Dataset(msgspec.Struct):
    owner: Client
    workflow_id: str


@pytest.fixture(scope="module")
async def dataset(world: World) -> AsyncIterator[Dataset]:
    """Two tenants with many executions."""
    services = world.services
    owners = [await world.user("agent_developer") for _ in range(2)]
    workflow_ids = [await create_published(owner, [transform("a", 1)]) for owner in owners]
    for owner, workflow_id in zip(owners, workflow_ids, strict=True):
        await run_sql(services, _ADD, owner.tenant_id, workflow_id, _COUNT)
    await run_sql(services, f"ANALYZE {_TABLE}, workflows, tenants")
    with lowered_bound():
        yield Dataset(owners[0], workflow_ids[0])
    for owner in owners:
        sql = f"DELETE FROM {_TABLE} WHERE tenant_id = $1"  # a constant
        await run_sql(services, sql, owner.tenant_id)
    await run_sql(services, f"ANALYZE {_TABLE}")


async def _explain_list(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    caller: Client,
    path: str,
    params: dict[str, Any],
) -> tuple[Plan, Plan]:
    """Returns the plans of the page and of the count."""
    with record_statements(monkeypatch, _TABLE) as statements:
        answer = await caller.get(path, params=params)
        assert answer.status_code == 200, answer.text
    # A periodic task of another fixture's worker may run a statement of its own, a short one.
    statement = max(statements, key=lambda item: len(item.sql))
    return (await explain(services, statement)).split_count()


async def test_a_page_reads_no_more_rows_than_a_page_of_each_status(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    dataset: Dataset,
    subtests: pytest.Subtests,
) -> None:
    for path in (EXECUTIONS, f"{PATH}/{dataset.workflow_id}/executions"):
        for page in _PAGES:
            with subtests.test(path=path, page=page):
                call = (services, monkeypatch, dataset.owner, path, page)
                plan, count_plan = await _explain_list(*call)
                assert plan.scans_without_index(_TABLE) == []
                assert count_plan.scans_without_index(_TABLE) == []
                groups = 1 if "status" in page else _STATUSES
                depth = 20 * page.get("page", 1)
                assert plan.rows_read(_TABLE) <= groups * depth
                assert plan.sorted_rows() <= groups * depth
                assert count_plan.rows_read(_TABLE) <= groups * (LOW_BOUND + 1)


async def test_a_page_of_all_tenants_reads_a_page_of_each_at_most(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    dataset: Dataset,
    super_admin: Client,
    subtests: pytest.Subtests,
) -> None:
    # Other tests have tenants of their own.
    [row] = await fetch_rows(services, "SELECT count(*) AS count FROM tenants")
    for page in _PAGES:
        with subtests.test(page=page):
            call = (services, monkeypatch, super_admin, EXECUTIONS, page)
            plan, count_plan = await _explain_list(*call)
            assert plan.scans_without_index(_TABLE) == []
            groups = 1 if "status" in page else _STATUSES
            depth = 20 * page.get("page", 1)
            assert plan.rows_read(_TABLE) <= groups * depth * row["count"]
            # The planner does not know how many rows a tenant has. Where it expects few, the count
            # reads all of one status of one tenant before it stops, but not those of the next.
            assert count_plan.rows_read(_TABLE) <= groups * (LOW_BOUND + 1) + _MAX_GROUP


async def test_pages_are_in_the_order_of_the_list(dataset: Dataset) -> None:
    """Over all pages of those that failed, and over the border between two statuses."""
    ids = [f"{dataset.workflow_id}{n:06d}" for n in range(0, _COUNT, 60)]

    async def list_ids(**params: Any) -> list[str]:
        body = (await dataset.owner.get(EXECUTIONS, params=params)).json()
        return [item["id"] for item in body["data"]]

    failed: dict[str, Any] = {"status": "failed", "per_page": 30}
    pages = [await list_ids(**failed, sort="created_at", page=page) for page in (1, 2, 3, 4)]
    assert [name for page in pages for name in page] == ids
    finished = await list_ids(status="failed", sort="-finished_at", per_page=100)
    assert finished == ids[:-101:-1]
    newest = await list_ids(per_page=7, page=2)
    assert newest == [f"{dataset.workflow_id}{_COUNT - n:06d}" for n in range(8, 15)]


async def test_only_one_finished_status_is_sorted_by_the_time_of_the_end(
    dataset: Dataset, subtests: pytest.Subtests
) -> None:
    for params in ({}, {"status": "pending"}, {"status": "running"}, {"status": "waiting"}):
        with subtests.test(params=params):
            answer = await dataset.owner.get(EXECUTIONS, params={**params, "sort": "finished_at"})
            error = refused(answer, 422, "validation_error")
            assert set(error["details"]) == {"sort"}


async def test_totals_of_long_lists_are_estimates(dataset: Dataset) -> None:
    for path in (EXECUTIONS, f"{PATH}/{dataset.workflow_id}/executions"):
        pagination = (await dataset.owner.get(path)).json()["pagination"]
        assert pagination["estimated"] is True
        assert _COUNT / 2 < pagination["total"] < _COUNT * 2
        failed = (await dataset.owner.get(path, params={"status": "failed"})).json()
        assert failed["pagination"]["total"] == _COUNT / 60


async def test_the_check_of_the_queue_reads_no_more_entries_than_the_bound(
    services: Services, dataset: Dataset
) -> None:
    # The statement is what is tested, with a limit that is less than what is pending.
    sql = queries._IS_QUEUE_FULL.replace(str(queries.MAX_PENDING - 1), str(LOW_BOUND - 1))
    plan = await explain(services, Statement(sql, (dataset.owner.tenant_id,)))
    assert plan.scans_without_index(_TABLE) == []
    # There are more, and more still with other statuses.
    assert plan.rows_read(_TABLE) == LOW_BOUND


async def test_the_count_of_starts_by_hand_reads_those_of_the_last_minute(
    services: Services, dataset: Dataset
) -> None:
    sql = queries._COUNT_MANUAL  # the statement is what is tested
    plan = await explain(services, Statement(sql, (dataset.owner.tenant_id,)))
    assert plan.rows_read(_TABLE) == 0
