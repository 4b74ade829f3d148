"""Many approvals: a page reads few rows, whoever lists it."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.domain.automation.approvals import queries
from app.services import Services
from db.lists import BOUND
from tests.automation.approvals.factories import PATH, request
from tests.database import fetch_rows, run_sql
from tests.list_bounds import LOW_BOUND, lowered_bound
from tests.platform.events.query_plans import Plan, explain, record_statements
from tests.world import Client, World

_COUNT = 4800
# One in 100 asks the user by id, half of the rest the role; one in 200 of these is pending.
_ADD = """
INSERT INTO approvals (tenant_id, id, caller_id, workflow_execution_id, title, message, status,
                       user_ids, role, correlation_id, created_at)
SELECT $1::text, 'apr_' || $1::text || lpad(n::text, 6, '0'), 'tst_' || n, 'wfx_' || n / 10, 'T',
       'M', CASE WHEN n % 200 < 2 THEN 'pending' ELSE 'approved' END,
       CASE WHEN n % 100 = 0 THEN ARRAY[$2::text] END,
       CASE WHEN n % 100 = 0 THEN NULL WHEN n % 2 = 0 THEN 'agent_user' ELSE 'viewer' END,
       'cor', now() - interval '30 days' + n * interval '1 second'
FROM generate_series(0, $3::int - 1) n
"""
_ADD_ASSIGNEES = """
INSERT INTO approval_assignees (tenant_id, approval_id, assignee, status, created_at)
SELECT tenant_id, id, coalesce(user_ids[1], tenant_id || ':' || role), status, created_at
FROM approvals WHERE tenant_id = $1
"""
_TABLES = ("approvals", "approval_assignees")


class Dataset(msgspec.Struct):
    user: Client
    viewer: Client
    admin: Client


@pytest.fixture(scope="module")
async def dataset(world: World) -> AsyncIterator[Dataset]:
    services = world.services
    user = await world.user("agent_user")
    tenant_id = user.tenant_id
    await run_sql(services, _ADD, tenant_id, user.user_id, _COUNT)
    await run_sql(services, _ADD_ASSIGNEES, tenant_id)
    await run_sql(services, "ANALYZE approvals, approval_assignees, tenants")
    others = [await world.user(role, tenant_id) for role in ("viewer", "tenant_admin")]
    with lowered_bound(), pytest.MonkeyPatch.context() as patch:
        count_limit = queries._COUNT_LIMIT.replace(str(BOUND + 1), str(LOW_BOUND + 1))
        patch.setattr(queries, "_COUNT_LIMIT", count_limit)
        yield Dataset(user, *others)
    await run_sql(services, "DELETE FROM approvals WHERE tenant_id = $1", tenant_id)
    await run_sql(services, "ANALYZE approvals, approval_assignees")


async def _explain_list(
    services: Services, monkeypatch: pytest.MonkeyPatch, caller: Client, params: dict[str, Any]
) -> tuple[Plan, Plan]:
    """Returns the plans of the page and of the count."""
    with record_statements(monkeypatch, "approvals") as statements:
        answer = await caller.get(PATH, params=params)
        assert answer.status_code == 200, answer.text
    return (await explain(services, statements[0])).split_count()


def _count_rows_read(plan: Plan) -> int:
    return sum(plan.rows_read(table) for table in _TABLES)


async def test_a_page_reads_no_more_rows_than_a_page_of_each_assignee(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    dataset: Dataset,
    subtests: pytest.Subtests,
) -> None:
    pages: list[dict[str, Any]] = [
        {},
        {"page": 5},
        {"sort": "created_at"},
        {"status": "pending"},
        {"status": "approved"},
        {"status": "rejected"},
        {"workflow_execution_id": "wfx_77"},
    ]
    for page in pages:
        for caller, scope in (
            (dataset.user, "mine"),
            (dataset.viewer, "mine"),
            (dataset.admin, "all"),
        ):
            with subtests.test(page=page, scope=scope, user=caller.email):
                params = {**page, "scope": scope}
                plan, count_plan = await _explain_list(services, monkeypatch, caller, params)
                for table in _TABLES:
                    assert plan.scans_without_index(table) == []
                    assert count_plan.scans_without_index(table) == []
                # A page of each status of the user and of the role; each row of the result again.
                # The rows have two statuses.
                groups = (1 if "status" in page else 2) * (2 if scope == "mine" else 1)
                depth = 20 * page.get("page", 1)
                assert _count_rows_read(plan) <= groups * depth + 20
                assert plan.sorted_rows() <= groups * depth
                assert _count_rows_read(count_plan) <= groups * (LOW_BOUND + 1)


async def test_a_page_of_all_tenants_reads_a_page_of_each_at_most(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    dataset: Dataset,
    world: World,
    super_admin: Client,
) -> None:
    other_tenants = [await world.tenant() for _ in range(3)]
    for tenant_id in other_tenants:
        await request(services, tenant_id)
    plan, count_plan = await _explain_list(services, monkeypatch, super_admin, {"scope": "all"})
    assert plan.scans_without_index("approvals") == []
    # Other tests have tenants of their own.
    (row,) = await fetch_rows(services, "SELECT count(*) AS count FROM tenants")
    assert _count_rows_read(plan) <= 40 * row["count"] + 20
    assert _count_rows_read(count_plan) <= LOW_BOUND + 1 + 40 * row["count"]


async def test_totals_of_long_lists_are_estimates(dataset: Dataset) -> None:
    for caller, scope, count in (
        (dataset.user, "mine", _COUNT / 2),
        (dataset.admin, "all", _COUNT),
    ):
        body = (await caller.get(PATH, params={"scope": scope})).json()
        assert body["pagination"]["estimated"] is True
        assert count / 2 < body["pagination"]["total"] < count * 2
    mine = {"status": "pending"}
    body = (await dataset.user.get(PATH, params=mine)).json()
    assert body["pagination"]["total"] == _COUNT / 200
