"""Long lists of notifications: totals are exact or near, and few rows are read."""

import itertools
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.domain.messaging.notifications.types import NAMES
from app.services import Services
from tests.database import run_sql
from tests.list_bounds import LOW_BOUND, lowered_bound
from tests.messaging.notifications.large_dataset import (
    COMMON,
    RARE,
    RESTORE_TYPES,
    LargeDataset,
    StoredRow,
    analyze,
    create_dataset,
    delete_dataset,
)
from tests.platform.events.query_plans import Plan, explain, record_statements
from tests.world import Client, World

CENTER = "/api/v1/notifications"
ROLES = ["owner", "super_admin"]
FILTERS: list[dict[str, Any]] = [
    {},
    {"read": False},
    {"read": True},
    {"type": COMMON},
    {"type": RARE},
    {"type": "workflow_failed"},
    {"type": COMMON, "read": False},
    {"type": COMMON, "read": True},
    {"type": RARE, "read": False},
]


@pytest.fixture(scope="module")
async def dataset(world: World) -> AsyncIterator[LargeDataset]:
    dataset = await create_dataset(world)
    with lowered_bound():
        yield dataset
    await delete_dataset(world.services, dataset)


def _caller(dataset: LargeDataset, role: str) -> Client:
    return dataset.owner if role == "owner" else dataset.super_admin


async def _read(caller: Client, path: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = await caller.get(path, params=params)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def _is_near(total: int, count: int) -> bool:
    """The planner estimates from samples and treats conditions as independent."""
    return max(LOW_BOUND, count * 0.6) < total < count * 1.7


def _select(rows: list[StoredRow], filters: dict[str, Any]) -> list[str]:
    return [
        row.id
        for row in rows
        if filters.get("type") in {None, row.type} and filters.get("read") in {None, row.read}
    ]


async def test_pages_and_totals_equal_those_filtered_in_python(
    dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    unread = len(_select(dataset.rows, {"read": False}))
    for filters in FILTERS:
        expected = _select(dataset.rows, filters)
        for page, per_page in ((1, 20), (2, 7), (8, 100)):
            with subtests.test(filters=filters, page=page):
                params = {**filters, "page": page, "per_page": per_page}
                body = await _read(dataset.owner, CENTER, params)
                first = (page - 1) * per_page
                ids = [item["id"] for item in body["data"]]
                assert ids == expected[first : first + per_page]
                assert _is_near(body["unread"], unread)
                _check_total(body, len(expected))


def _check_total(body: dict[str, Any], count: int) -> None:
    assert body.get("estimated", False) is (count > LOW_BOUND)
    assert _is_near(body["total"], count) if count > LOW_BOUND else body["total"] == count


# Rows that are read


class Explainer(msgspec.Struct):
    services: Services
    monkeypatch: pytest.MonkeyPatch

    async def explain(
        self, table: str, caller: Client, path: str, params: dict[str, Any]
    ) -> list[Plan]:
        """Returns the plans of all statements on a table that a request runs."""
        with record_statements(self.monkeypatch, table) as statements:
            await _read(caller, path, params)
        plans = [await explain(self.services, statement) for statement in statements]
        assert all(plan.scans_without_index(table) == [] for plan in plans)
        return plans


@pytest.fixture
def explainer(services: Services, monkeypatch: pytest.MonkeyPatch) -> Explainer:
    return Explainer(services, monkeypatch)


def _count_groups(filters: dict[str, Any]) -> int:
    """Returns how many combinations of type and state are read, each in its order."""
    types = 1 if "type" in filters else len(NAMES)
    return types * (1 if "read" in filters else 2) if filters else 1


async def test_a_page_of_the_center_reads_no_more_than_it_must(
    explainer: Explainer, dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            caller = _caller(dataset, role)
            for filters, page in itertools.product(FILTERS, (1, 10)):
                with subtests.test(filters=filters, page=page):
                    params = {**filters, "page": page, "per_page": 20}
                    plan, *others = await explainer.explain("notifications", caller, CENTER, params)
                    rest, first_count = plan.split_count()
                    page_plan, second_count = rest.split_count()
                    # One page of each group through the index, and one page for its columns.
                    rows = _count_groups(filters) * 20 * page
                    assert page_plan.rows_read("notifications") <= rows + 20
                    assert page_plan.sorted_rows() <= rows
                    for count in (first_count, second_count, *others):
                        assert count.rows_read("notifications") <= LOW_BOUND + 1
                        assert count.sorted_rows() == 0
                    # Only a page without rows has to count apart from it.
                    assert others == [] or page_plan.nodes[0]["Actual Rows"] == 0


async def test_the_unread_count_reads_no_more_than_its_bound(
    explainer: Explainer, dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            caller, path = _caller(dataset, role), f"{CENTER}/unread/count"
            [plan] = await explainer.explain("notifications", caller, path, {})
            assert plan.rows_read("notifications") <= LOW_BOUND + 1
            unread = len(_select(dataset.rows, {"read": False}))
            assert _is_near((await _read(caller, path, {}))["count"], unread)


@pytest.fixture
async def one_type(services: Services, dataset: LargeDataset) -> AsyncIterator[None]:
    """All notifications have the same type, as the planner knows."""
    await run_sql(services, f"UPDATE notifications SET type = '{COMMON}'")
    await analyze(services)
    yield
    await run_sql(services, RESTORE_TYPES)
    await analyze(services)


async def test_where_there_is_one_type_no_more_is_read_for_the_others(
    explainer: Explainer, dataset: LargeDataset, one_type: None, subtests: pytest.Subtests
) -> None:
    for path in (CENTER, f"{CENTER}/unread/count"):
        with subtests.test(path=path):
            for params in ({"read": False}, {"read": True}) if path == CENTER else ({},):
                plans = await explainer.explain("notifications", dataset.owner, path, params)
                rows = sum(plan.rows_read("notifications") for plan in plans)
                assert rows <= 2 * (LOW_BOUND + 1) + 2 * 20


async def test_a_page_of_a_log_reads_no_more_than_it_must(
    explainer: Explainer, dataset: LargeDataset, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            caller, table = _caller(dataset, role), "notification_log"
            for status, page in itertools.product(
                (None, "delivered", "failed", "pending"), (1, 10)
            ):
                with subtests.test(status=status, page=page):
                    params = {"page": page, "per_page": 20} | ({"status": status} if status else {})
                    plan, *others = await explainer.explain(table, caller, dataset.log, params)
                    page_plan, count = plan.split_count()
                    rows = (1 if status else 3) * 20 * page
                    assert page_plan.rows_read(table) <= rows + 20
                    assert page_plan.sorted_rows() <= rows
                    for joined in ("notification_deliveries", "notification_messages"):
                        assert page_plan.rows_read(joined) <= 20
                        assert page_plan.scans_without_index(joined) == []
                    assert all(item.rows_read(table) <= LOW_BOUND + 1 for item in (count, *others))
